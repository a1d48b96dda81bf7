// The version of Pagoda's headers, for C and C++. CMakeLists.txt reads it here.
#ifndef PAGODA_VERSION_H_
#define PAGODA_VERSION_H_

#define PAGODA_VERSION_MAJOR 0
#define PAGODA_VERSION_MINOR 1
#define PAGODA_VERSION_PATCH 0

// One number that grows with every version: 1002003 is 1.2.3. pagoda_version() (pagoda.h) returns
// that of the library that runs.
#define PAGODA_VERSION \
  (PAGODA_VERSION_MAJOR * 1000000 + PAGODA_VERSION_MINOR * 1000 + PAGODA_VERSION_PATCH)

#endif  // PAGODA_VERSION_H_
