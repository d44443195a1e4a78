/* The names from EGL which the driver's prototypes mention. */
#pragma once
typedef int EGLint;
