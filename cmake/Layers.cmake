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
    # A few files at a time are compiled as one, because the headers cost more than the code. Names in
    # anonymous namespaces must therefore be unique within a layer.
    set_target_properties(${target} PROPERTIES
      UNITY_BUILD ${COTENANT_UNITY} UNITY_BUILD_BATCH_SIZE 8)
    if(COTENANT_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      # g++ warns of an Impl with members from an anonymous namespace when that is not the main file.
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
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
