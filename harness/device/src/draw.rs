//! Kernels of graphics stages: pipelines, framebuffers and draw commands.

use ash::{ext, vk};
use plan::{DeviceError, Drawing, Kernel};

use crate::error::call_error;
use crate::pipeline::{Pipeline, PipelineCompiler};
use crate::stage_flags::stage_flag;

impl PipelineCompiler {
    /// Compiles a graphics kernel into `pipeline`, whose layout exists. Objects created before an error are
    /// stored there, too.
    pub(crate) fn compile_graphics(
        &self,
        kernel: &Kernel,
        module: vk::ShaderModule,
        flags: vk::PipelineCreateFlags,
        pipeline: &mut Pipeline,
    ) -> Result<(), DeviceError> {
        // A pipeline that is only inspected writes its results to an attachment, so that the compiler
        // discards none of them.
        let is_inspected = is_inspected(flags);
        let attachments = [color_attachment()];
        let references =
            [vk::AttachmentReference::default().layout(vk::ImageLayout::COLOR_ATTACHMENT_OPTIMAL)];
        let mut subpass =
            vk::SubpassDescription::default().pipeline_bind_point(vk::PipelineBindPoint::GRAPHICS);
        let mut info = vk::RenderPassCreateInfo::default();
        if is_inspected {
            subpass = subpass.color_attachments(&references);
            info = info.attachments(&attachments);
        }
        let subpasses = [subpass];
        let info = info.subpasses(&subpasses);
        // SAFETY: the device lives; a render pass may have no attachment, and every device draws to ones of this format.
        pipeline.render_pass =
            unsafe { self.raw.create_render_pass(&info, None) }.map_err(call_error("vkCreateRenderPass"))?;
        let stage = &kernel.stage;
        let companions = [(stage.vertex_shader(), vk::ShaderStageFlags::VERTEX), (stage.mesh_shader(), MESH)];
        let Some((words, beside)) = companions.into_iter().find_map(|(words, flag)| Some((words?, flag)))
        else {
            return self.create_graphics(
                &[shader_stage(stage_flag(stage), module)],
                !is_inspected,
                flags,
                pipeline,
            );
        };
        let info = vk::ShaderModuleCreateInfo::default().code(words);
        // SAFETY: as for the kernel's own module.
        let other = unsafe { self.raw.create_shader_module(&info, None) };
        let other = other.map_err(call_error("vkCreateShaderModule"))?;
        let discards = beside == MESH && !is_inspected;
        let own =
            if beside == MESH { vk::ShaderStageFlags::TASK_EXT } else { vk::ShaderStageFlags::FRAGMENT };
        let stages = [shader_stage(beside, other), shader_stage(own, module)];
        let result = self.create_graphics(&stages, discards, flags, pipeline);
        // SAFETY: a module is needed only while pipelines are made from it.
        unsafe { self.raw.destroy_shader_module(other, None) };
        result
    }

    /// Creates a pipeline that draws points without vertex buffers, or the output of a mesh shader.
    fn create_graphics(
        &self,
        stages: &[vk::PipelineShaderStageCreateInfo<'_>],
        discards: bool,
        flags: vk::PipelineCreateFlags,
        pipeline: &mut Pipeline,
    ) -> Result<(), DeviceError> {
        let vertex_input = vk::PipelineVertexInputStateCreateInfo::default();
        let assembly =
            vk::PipelineInputAssemblyStateCreateInfo::default().topology(vk::PrimitiveTopology::POINT_LIST);
        let size = Drawing::VIEWPORT_SIZE as f32;
        let viewport = [vk::Viewport::default().width(size).height(size).max_depth(1.0)];
        let viewport = vk::PipelineViewportStateCreateInfo::default().viewports(&viewport).scissor_count(1);
        let rasterization = vk::PipelineRasterizationStateCreateInfo::default()
            .rasterizer_discard_enable(discards)
            .line_width(1.0);
        let samples = vk::PipelineMultisampleStateCreateInfo::default()
            .rasterization_samples(vk::SampleCountFlags::TYPE_1);
        let red =
            [vk::PipelineColorBlendAttachmentState::default().color_write_mask(vk::ColorComponentFlags::R)];
        let is_inspected = is_inspected(flags);
        let blend = vk::PipelineColorBlendStateCreateInfo::default();
        let blend = if is_inspected { blend.attachments(&red) } else { blend };
        let dynamic =
            vk::PipelineDynamicStateCreateInfo::default().dynamic_states(&[vk::DynamicState::SCISSOR]);
        let info = vk::GraphicsPipelineCreateInfo::default()
            .flags(flags)
            .stages(stages)
            .vertex_input_state(&vertex_input)
            .input_assembly_state(&assembly)
            .viewport_state(&viewport)
            .rasterization_state(&rasterization)
            .multisample_state(&samples)
            .color_blend_state(&blend)
            .dynamic_state(&dynamic)
            .layout(pipeline.layout)
            .render_pass(pipeline.render_pass);
        // SAFETY: everything that `info` points to lives until after the call; the features that the stages need are on, since
        // plans are checked against them, and every device has viewports of this size.
        let made = unsafe { self.raw.create_graphics_pipelines(vk::PipelineCache::null(), &[info], None) };
        let call = "vkCreateGraphicsPipelines";
        match made {
            Ok(pipelines) => {
                let code = "no pipeline".to_owned();
                let made = pipelines.first().copied();
                pipeline.raw = made.ok_or(DeviceError::Driver { call, code })?;
                Ok(())
            }
            Err((_, result)) => Err(call_error(call)(result)),
        }
    }
}

const MESH: vk::ShaderStageFlags = vk::ShaderStageFlags::MESH_EXT;

/// Returns true if the pipeline is only inspected.
fn is_inspected(flags: vk::PipelineCreateFlags) -> bool {
    flags.contains(vk::PipelineCreateFlags::CAPTURE_INTERNAL_REPRESENTATIONS_KHR)
}

/// Returns an attachment for one word of each fragment.
fn color_attachment() -> vk::AttachmentDescription {
    vk::AttachmentDescription::default()
        .format(vk::Format::R32_UINT)
        .samples(vk::SampleCountFlags::TYPE_1)
        .load_op(vk::AttachmentLoadOp::DONT_CARE)
        .store_op(vk::AttachmentStoreOp::STORE)
        .stencil_load_op(vk::AttachmentLoadOp::DONT_CARE)
        .stencil_store_op(vk::AttachmentStoreOp::DONT_CARE)
        .final_layout(vk::ImageLayout::COLOR_ATTACHMENT_OPTIMAL)
}

fn shader_stage(
    stage: vk::ShaderStageFlags,
    module: vk::ShaderModule,
) -> vk::PipelineShaderStageCreateInfo<'static> {
    vk::PipelineShaderStageCreateInfo::default().stage(stage).module(module).name(c"main")
}

pub(crate) enum DrawWork<'a> {
    /// This many points, one per vertex.
    Points(u32),
    /// This many workgroups of a mesh or task shader.
    Workgroups(&'a ext::mesh_shader::Device, u32),
}

/// The framebuffer of a step, without attachments.
#[derive(Clone, Copy, Default)]
pub(crate) struct RenderTarget {
    raw: vk::Framebuffer,
    extent: (u32, u32),
}

impl RenderTarget {
    /// Sets the size. No submission that uses it may be in flight.
    pub(crate) fn resize(
        &mut self,
        device: &ash::Device,
        render_pass: vk::RenderPass,
        extent: (u32, u32),
    ) -> Result<(), DeviceError> {
        if self.extent == extent {
            return Ok(());
        }
        self.destroy(device);
        let info = vk::FramebufferCreateInfo::default()
            .render_pass(render_pass)
            .width(extent.0)
            .height(extent.1)
            .layers(1);
        // SAFETY: the render pass is this device's and has no attachment; plans are checked for the size.
        self.raw =
            unsafe { device.create_framebuffer(&info, None) }.map_err(call_error("vkCreateFramebuffer"))?;
        self.extent = extent;
        Ok(())
    }

    /// Destroys it. No submission that uses it may be in flight.
    pub(crate) fn destroy(&mut self, device: &ash::Device) {
        // SAFETY: this device created the handle or it is null, and by the contract of this function nothing
        // uses it.
        unsafe { device.destroy_framebuffer(self.raw, None) };
        *self = RenderTarget::default();
    }

    /// Records a draw in its own render pass. The pipeline, its bindings and push constants must be bound.
    pub(crate) fn record(
        &self,
        device: &ash::Device,
        commands: vk::CommandBuffer,
        render_pass: vk::RenderPass,
        work: &DrawWork<'_>,
    ) {
        let (width, height) = self.extent;
        let area = vk::Rect2D::default().extent(vk::Extent2D { width, height });
        let info = vk::RenderPassBeginInfo::default()
            .render_pass(render_pass)
            .framebuffer(self.raw)
            .render_area(area);
        // SAFETY: the command buffer is being recorded, on a queue with graphics, outside of a render pass;
        // the framebuffer was made for this render pass or an equal one. Devices without mesh shader
        // functions are excluded by the check of the plan.
        unsafe {
            device.cmd_set_scissor(commands, 0, &[area]);
            device.cmd_begin_render_pass(commands, &info, vk::SubpassContents::INLINE);
            match work {
                DrawWork::Points(points) => device.cmd_draw(commands, *points, 1, 0, 0),
                DrawWork::Workgroups(calls, count) => calls.cmd_draw_mesh_tasks(commands, *count, 1, 1),
            }
            device.cmd_end_render_pass(commands);
        }
    }
}
