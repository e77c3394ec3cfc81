# The ECS API's shapes (data/ecs-api.json) as C++ tables, compiled into cotenant_codec, which must
# exist already. The tables' form is src/codec/api_shapes.h.
get_filename_component(api_shapes_root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(api_shapes_script ${api_shapes_root}/scripts/gen-api-shapes.py)
set(api_shapes_model ${api_shapes_root}/data/ecs-api.json)
set(api_shapes_cpp ${CMAKE_CURRENT_BINARY_DIR}/generated/api_shapes.cpp)

add_custom_command(
  OUTPUT ${api_shapes_cpp}
  COMMAND ${Python3_EXECUTABLE} ${api_shapes_script} ${api_shapes_model} ${api_shapes_cpp}
  DEPENDS ${api_shapes_script} ${api_shapes_model}
  COMMENT "Generating the ECS API's shapes"
  VERBATIM)
target_sources(cotenant_codec PRIVATE ${api_shapes_cpp})
