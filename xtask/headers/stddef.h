#pragma once
typedef __SIZE_TYPE__ size_t;
#define NULL ((void *)0)
