//! Kernels as pipelines.

use ash::vk;
use plan::{DeviceError, Image, ImageShape, Kernel, Stage};

use crate::draw::stage_flag;
use crate::error::failed;

/// A kernel's pipeline and layouts; null handles where the making was cut short.
#[derive(Default)]
pub(crate) struct Pipeline {
    pub(crate) set_layout: vk::DescriptorSetLayout,
    pub(crate) layout: vk::PipelineLayout,
    /// Of a kernel of a graphics stage; else null.
    pub(crate) render_pass: vk::RenderPass,
    pub(crate) raw: vk::Pipeline,
}

/// The descriptor of an image.
pub(crate) fn descriptor_type(shape: ImageShape) -> vk::DescriptorType {
    match shape {
        ImageShape::Texels(_) => vk::DescriptorType::STORAGE_TEXEL_BUFFER,
        ImageShape::OneDimensional { .. } | ImageShape::TwoDimensional { .. } => {
            vk::DescriptorType::STORAGE_IMAGE
        }
    }
}

/// What makes pipelines of a device, on any thread.
#[derive(Clone)]
pub(crate) struct Maker {
    pub(crate) raw: ash::Device,
    pub(crate) may_require_subgroup_size: bool,
}

impl Maker {
    /// Compiles a kernel. Drivers may put the work off to the first dispatch.
    pub(crate) fn make(&self, kernel: &Kernel, images: &[Image]) -> Result<Pipeline, DeviceError> {
        self.make_with(kernel, images, vk::PipelineCreateFlags::empty())
    }

    /// The same with flags, whose features the caller knows to be on.
    pub(crate) fn make_with(
        &self,
        kernel: &Kernel,
        images: &[Image],
        flags: vk::PipelineCreateFlags,
    ) -> Result<Pipeline, DeviceError> {
        let mut pipeline = Pipeline::default();
        match self.fill_pipeline(kernel, images, flags, &mut pipeline) {
            Ok(()) => Ok(pipeline),
            Err(error) => {
                self.destroy(&pipeline);
                Err(error)
            }
        }
    }

    fn fill_pipeline(
        &self,
        kernel: &Kernel,
        images: &[Image],
        flags: vk::PipelineCreateFlags,
        pipeline: &mut Pipeline,
    ) -> Result<(), DeviceError> {
        let buffers = (0..kernel.bindings).map(|_| vk::DescriptorType::STORAGE_BUFFER);
        let images = kernel.images.iter().filter_map(|image| images.get(image.0 as usize));
        let bindings: Vec<_> = (0..)
            .zip(buffers.chain(images.map(|image| descriptor_type(image.shape))))
            .map(|(binding, ty)| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(binding)
                    .descriptor_type(ty)
                    .descriptor_count(1)
                    .stage_flags(stage_flag(&kernel.stage))
            })
            .collect();
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: the device lives; the number of bindings is within its limits.
        pipeline.set_layout = unsafe { self.raw.create_descriptor_set_layout(&info, None) }
            .map_err(failed("vkCreateDescriptorSetLayout"))?;

        let set_layouts = [pipeline.set_layout];
        let pushed = kernel.push_constant_bytes + 8 * kernel.addresses.len() as u32;
        let ranges = [vk::PushConstantRange::default().stage_flags(stage_flag(&kernel.stage)).size(pushed)];
        let ranges = if pushed == 0 { &[] } else { &ranges[..] };
        let info =
            vk::PipelineLayoutCreateInfo::default().set_layouts(&set_layouts).push_constant_ranges(ranges);
        // SAFETY: as above; the size is a multiple of four within the device's limit.
        pipeline.layout = unsafe { self.raw.create_pipeline_layout(&info, None) }
            .map_err(failed("vkCreatePipelineLayout"))?;

        let info = vk::ShaderModuleCreateInfo::default().code(&kernel.words);
        // SAFETY: the words start with a SPIR-V header; that they form a valid module is the word of who made the plan,
        // as in every interface to Vulkan. The validation layers check it where they are on.
        let module =
            unsafe { self.raw.create_shader_module(&info, None) }.map_err(failed("vkCreateShaderModule"))?;
        let compiled = if kernel.stage == Stage::Compute {
            self.compile(kernel, module, pipeline.layout, flags).map(|made| pipeline.raw = made)
        } else {
            self.compile_graphics(kernel, module, flags, pipeline)
        };
        // SAFETY: a module is needed only while pipelines are made from it.
        unsafe { self.raw.destroy_shader_module(module, None) };
        compiled
    }

    fn compile(
        &self,
        kernel: &Kernel,
        module: vk::ShaderModule,
        layout: vk::PipelineLayout,
        flags: vk::PipelineCreateFlags,
    ) -> Result<vk::Pipeline, DeviceError> {
        let mut required = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default();
        let mut stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(c"main");
        if let Some(size) = kernel.subgroup_size {
            stage = stage.flags(vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS);
            if self.may_require_subgroup_size {
                required = required.required_subgroup_size(size);
                stage = stage.push_next(&mut required);
            }
        }
        let info = vk::ComputePipelineCreateInfo::default().flags(flags).stage(stage).layout(layout);
        // SAFETY: everything that `info` points to lives until after the call, and the features that the subgroup size
        // needs are on: capabilities say so, and plans are checked against them.
        let made = unsafe { self.raw.create_compute_pipelines(vk::PipelineCache::null(), &[info], None) };
        match made {
            Ok(pipelines) => pipelines.first().copied().ok_or_else(|| DeviceError::Driver {
                call: "vkCreateComputePipelines",
                code: "no pipeline".to_owned(),
            }),
            Err((_, result)) => Err(failed("vkCreateComputePipelines")(result)),
        }
    }

    /// Gives a pipeline back. No submission may use it any more.
    pub(crate) fn destroy(&self, pipeline: &Pipeline) {
        // SAFETY: the handles were made by this device or are null, and callers see to it that nothing uses them.
        unsafe {
            self.raw.destroy_pipeline(pipeline.raw, None);
            self.raw.destroy_render_pass(pipeline.render_pass, None);
            self.raw.destroy_pipeline_layout(pipeline.layout, None);
            self.raw.destroy_descriptor_set_layout(pipeline.set_layout, None);
        }
    }
}
