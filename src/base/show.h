/*
 * show: text from outside, made safe to show. Bytes of a program, a log or a stranger's session never
 * reach a terminal as they are: control bytes, broken UTF-8 and characters that reorder or hide text
 * (bidi controls, zero-width) are shown as \xNN or \u{N}, not sent.
 */
#ifndef CUWHY_SHOW_H
#define CUWHY_SHOW_H

#include "base/util.h"

/* Appends text, on one line: line ends and tabs become a space. NULL appends nothing. */
void show_text(struct buf *out, const char *text);

#endif
