//! The flags of Vulkan for the stages of plans.

use ash::vk;
use plan::{Stage, Stages};

/// Returns the stage flag of a kernel's bindings and push constants.
pub(crate) fn stage_flag(stage: &Stage) -> vk::ShaderStageFlags {
    match stage {
        Stage::Compute => vk::ShaderStageFlags::COMPUTE,
        Stage::Vertex => vk::ShaderStageFlags::VERTEX,
        Stage::Fragment { .. } => vk::ShaderStageFlags::FRAGMENT,
        Stage::VertexAndFragment { .. } => vk::ShaderStageFlags::VERTEX | vk::ShaderStageFlags::FRAGMENT,
        Stage::Mesh => vk::ShaderStageFlags::MESH_EXT,
        Stage::Task { .. } => vk::ShaderStageFlags::TASK_EXT,
    }
}

/// Returns the stage mask of a dependency.
pub(crate) fn pipeline_stages(stages: Stages) -> vk::PipelineStageFlags {
    let kinds = [
        (Stages::COMPUTE, vk::PipelineStageFlags::COMPUTE_SHADER),
        (Stages::VERTEX, vk::PipelineStageFlags::VERTEX_SHADER),
        (Stages::FRAGMENT, vk::PipelineStageFlags::FRAGMENT_SHADER),
        (Stages::MESH, vk::PipelineStageFlags::MESH_SHADER_EXT),
        (Stages::TASK, vk::PipelineStageFlags::TASK_SHADER_EXT),
        (Stages::TRANSFER, vk::PipelineStageFlags::TRANSFER),
        (Stages::HOST, vk::PipelineStageFlags::HOST),
        (Stages::ALL, vk::PipelineStageFlags::ALL_COMMANDS),
        (Stages::TOP, vk::PipelineStageFlags::TOP_OF_PIPE),
        (Stages::BOTTOM, vk::PipelineStageFlags::BOTTOM_OF_PIPE),
    ];
    let named = kinds.into_iter().filter(|(kind, _)| stages.intersects(*kind));
    named.fold(vk::PipelineStageFlags::empty(), |all, (_, flag)| all | flag)
}
