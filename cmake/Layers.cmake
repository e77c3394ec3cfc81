# cotenant_layer(NAME SOURCES ... [DEPENDS layer ...] [LIBRARIES target ...] [PRIVATE_LIBRARIES target ...])
#
# A layer is a folder below src/, a static library `cotenant_<NAME>` and a namespace. Its headers are
# included as "<NAME>/file.h". Each layer exposes only its own folder (by a link in the build tree), so
# that an include which no DEPENDS declares does not compile: the arrows of docs/architecture.md are
# kept by the compiler.
function(cotenant_layer name)
  cmake_parse_arguments(LAYER "" "" "SOURCES;DEPENDS;LIBRARIES;PRIVATE_LIBRARIES" ${ARGN})
  set(target cotenant_${name})
  set(include_dir ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${include_dir})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${name} ${include_dir}/${name} SYMBOLIC)

  if(LAYER_SOURCES)
    add_library(${target} STATIC ${LAYER_SOURCES})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${include_dir})
  foreach(dependency ${LAYER_DEPENDS})
    target_link_libraries(${target} ${scope} cotenant_${dependency})
  endforeach()
  target_link_libraries(${target} ${scope} ${LAYER_LIBRARIES})
  if(LAYER_PRIVATE_LIBRARIES)
    target_link_libraries(${target} PRIVATE ${LAYER_PRIVATE_LIBRARIES})
  endif()
endfunction()
