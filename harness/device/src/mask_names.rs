//! Names of Vulkan's pipeline stages, accesses and image layouts.

use ash::vk;

/// Returns the names of stages (`VkPipelineStageFlags2`), with ` | ` between them; empty without any.
pub fn stage_names(mask: u64) -> String {
    format!("{:?}", vk::PipelineStageFlags2::from_raw(mask))
}

/// Returns the names of accesses (`VkAccessFlags2`).
pub fn access_names(mask: u64) -> String {
    format!("{:?}", vk::AccessFlags2::from_raw(mask))
}

/// Returns the names of stages without `synchronization2` (`VkPipelineStageFlags`).
pub fn old_stage_names(mask: u32) -> String {
    format!("{:?}", vk::PipelineStageFlags::from_raw(mask))
}

/// Returns the name of a layout (`VkImageLayout`).
pub fn layout_name(layout: i32) -> String {
    format!("{:?}", vk::ImageLayout::from_raw(layout))
}

/// Returns the names of aspects of images (`VkImageAspectFlags`).
pub fn aspect_names(mask: u32) -> String {
    format!("{:?}", vk::ImageAspectFlags::from_raw(mask))
}
