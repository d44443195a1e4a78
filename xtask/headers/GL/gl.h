/* The names from OpenGL which the driver's prototypes mention. */
#pragma once
typedef unsigned int GLenum;
typedef unsigned int GLuint;
