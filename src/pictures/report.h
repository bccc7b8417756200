/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: the constant text of the report page. */
#ifndef TB_PICTURES_REPORT_H
#define TB_PICTURES_REPORT_H

#include "pictures/scene.h"

extern const char tb_report_style[];
extern const char tb_report_script[];

#endif
