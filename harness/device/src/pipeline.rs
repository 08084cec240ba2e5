//! Creation of pipelines from kernels.

use std::ffi::CString;

use ash::vk;
use plan::{DeviceError, Image, ImageAccess, ImageShape, Kernel, KernelStage, Subgroups};

use crate::error::call_error;
use crate::stage_flags::stage_flag;

/// A kernel's pipeline and layouts; handles are null if creation failed midway.
#[derive(Default)]
pub(crate) struct Pipeline {
    /// The layouts by set number.
    pub(crate) set_layouts: Vec<vk::DescriptorSetLayout>,
    pub(crate) layout: vk::PipelineLayout,
    /// The render pass of a graphics kernel; else null.
    pub(crate) render_pass: vk::RenderPass,
    pub(crate) raw: vk::Pipeline,
}

pub(crate) fn descriptor_type(image: &Image) -> vk::DescriptorType {
    match (image.shape, image.access) {
        (ImageShape::Texels(_), _) => vk::DescriptorType::STORAGE_TEXEL_BUFFER,
        (_, ImageAccess::Storage) => vk::DescriptorType::STORAGE_IMAGE,
        (_, ImageAccess::Sampled(_)) => vk::DescriptorType::SAMPLED_IMAGE,
        (_, ImageAccess::Combined(_)) => vk::DescriptorType::COMBINED_IMAGE_SAMPLER,
    }
}

/// A binding of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BindingSlot {
    pub(crate) set: u32,
    pub(crate) binding: u32,
    pub(crate) ty: vk::DescriptorType,
    /// The number of elements of a descriptor array.
    pub(crate) count: u32,
}

/// Returns the bindings of a kernel: buffers in dispatch order with arrays as one, then images and samplers.
pub(crate) fn binding_slots(
    kernel: &Kernel,
    images: impl Iterator<Item = vk::DescriptorType>,
) -> Vec<BindingSlot> {
    if let Some(interface) = &kernel.interface {
        let first = interface.bindings.iter().filter(|bound| bound.element == 0);
        let slot = |bound: &plan::BufferBinding| BindingSlot {
            set: bound.set,
            binding: bound.binding,
            ty: buffer_type(bound.uniform),
            count: interface.element_count(bound.set, bound.binding),
        };
        let places = interface.images.iter().zip(images);
        let image = |((set, binding), ty): (&(u32, u32), _)| BindingSlot {
            set: *set,
            binding: *binding,
            ty,
            count: 1,
        };
        let samplers = interface.samplers.iter().map(|(at, _)| (at, vk::DescriptorType::SAMPLER));
        return first.map(slot).chain(places.chain(samplers).map(image)).collect();
    }
    let buffers = (0..kernel.bindings).map(|_| buffer_type(false));
    (0..)
        .zip(buffers.chain(images))
        .map(|(binding, ty)| BindingSlot { set: 0, binding, ty, count: 1 })
        .collect()
}

fn buffer_type(uniform: bool) -> vk::DescriptorType {
    if uniform { vk::DescriptorType::UNIFORM_BUFFER } else { vk::DescriptorType::STORAGE_BUFFER }
}

/// Creates pipelines of a device on any thread.
#[derive(Clone)]
pub(crate) struct PipelineCompiler {
    pub(crate) raw: ash::Device,
    pub(crate) may_require_subgroup_size: bool,
}

impl PipelineCompiler {
    /// Compiles a kernel. Drivers may defer the work to the first dispatch.
    pub(crate) fn compile_kernel(&self, kernel: &Kernel, images: &[Image]) -> Result<Pipeline, DeviceError> {
        self.compile_with_flags(kernel, images, vk::PipelineCreateFlags::empty())
    }

    /// Compiles a kernel with flags, whose features must be enabled.
    pub(crate) fn compile_with_flags(
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
        let images = kernel.images.iter().filter_map(|image| images.get(image.0 as usize));
        let slots = binding_slots(kernel, images.map(descriptor_type));
        let sets = slots.iter().map(|slot| slot.set + 1).max().unwrap_or(1);
        for set in 0..sets {
            let bindings: Vec<_> = slots
                .iter()
                .filter(|slot| slot.set == set)
                .map(|slot| {
                    vk::DescriptorSetLayoutBinding::default()
                        .binding(slot.binding)
                        .descriptor_type(slot.ty)
                        .descriptor_count(slot.count)
                        .stage_flags(stage_flag(&kernel.stage))
                })
                .collect();
            let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
            // SAFETY: the device lives; the number of bindings is within its limits.
            let layout = unsafe { self.raw.create_descriptor_set_layout(&info, None) }
                .map_err(call_error("vkCreateDescriptorSetLayout"))?;
            pipeline.set_layouts.push(layout);
        }

        let pushed = kernel.push_constant_bytes + 8 * kernel.addresses.len() as u32;
        let ranges = [vk::PushConstantRange::default().stage_flags(stage_flag(&kernel.stage)).size(pushed)];
        let ranges = if pushed == 0 { &[] } else { &ranges[..] };
        let info = vk::PipelineLayoutCreateInfo::default()
            .set_layouts(&pipeline.set_layouts)
            .push_constant_ranges(ranges);
        // SAFETY: as above; the size is a multiple of four within the device's limit.
        pipeline.layout = unsafe { self.raw.create_pipeline_layout(&info, None) }
            .map_err(call_error("vkCreatePipelineLayout"))?;

        let info = vk::ShaderModuleCreateInfo::default().code(&kernel.words);
        // SAFETY: the words start with a SPIR-V header; the maker of the plan guarantees a valid module, as
        // in every Vulkan interface. Validation layers check it if enabled.
        let module = unsafe { self.raw.create_shader_module(&info, None) }
            .map_err(call_error("vkCreateShaderModule"))?;
        let compiled = if kernel.stage == KernelStage::Compute {
            self.compile_compute(kernel, module, pipeline.layout, flags).map(|made| pipeline.raw = made)
        } else {
            self.compile_graphics(kernel, module, flags, pipeline)
        };
        // SAFETY: a module is needed only while pipelines are made from it.
        unsafe { self.raw.destroy_shader_module(module, None) };
        compiled
    }

    fn compile_compute(
        &self,
        kernel: &Kernel,
        module: vk::ShaderModule,
        layout: vk::PipelineLayout,
        flags: vk::PipelineCreateFlags,
    ) -> Result<vk::Pipeline, DeviceError> {
        let mut required = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default();
        let entry = kernel.interface.as_ref().map_or("main", |interface| interface.entry.as_str());
        let entry = CString::new(entry)
            .map_err(|_| DeviceError::InvalidPlan("an entry point with a zero in its name".to_owned()))?;
        let (entries, data) = specialization_entries(kernel);
        let constants = vk::SpecializationInfo::default().map_entries(&entries).data(&data);
        let mut stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(&entry);
        if !entries.is_empty() {
            stage = stage.specialization_info(&constants);
        }
        let flags_of_stage = match kernel.subgroups {
            Subgroups::Full(_) => vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS,
            Subgroups::Varying => vk::PipelineShaderStageCreateFlags::ALLOW_VARYING_SUBGROUP_SIZE,
            Subgroups::Any | Subgroups::Required(_) => vk::PipelineShaderStageCreateFlags::empty(),
        };
        stage = stage.flags(flags_of_stage);
        if let Some(size) = kernel.subgroups.required_size().filter(|_| self.may_require_subgroup_size) {
            required = required.required_subgroup_size(size);
            stage = stage.push_next(&mut required);
        }
        let info = vk::ComputePipelineCreateInfo::default().flags(flags).stage(stage).layout(layout);
        // SAFETY: everything that `info` points to lives until after the call, and the features for subgroup
        // sizes are enabled, since plans are checked against the capabilities.
        let made = unsafe { self.raw.create_compute_pipelines(vk::PipelineCache::null(), &[info], None) };
        match made {
            Ok(pipelines) => pipelines.first().copied().ok_or_else(|| DeviceError::Driver {
                call: "vkCreateComputePipelines",
                code: "no pipeline".to_owned(),
            }),
            Err((_, result)) => Err(call_error("vkCreateComputePipelines")(result)),
        }
    }

    /// Destroys a pipeline. No submission may use it.
    pub(crate) fn destroy(&self, pipeline: &Pipeline) {
        // SAFETY: this device created the handles or they are null, and by the contract of this function
        // nothing uses them.
        unsafe {
            self.raw.destroy_pipeline(pipeline.raw, None);
            self.raw.destroy_render_pass(pipeline.render_pass, None);
            self.raw.destroy_pipeline_layout(pipeline.layout, None);
            for layout in &pipeline.set_layouts {
                self.raw.destroy_descriptor_set_layout(*layout, None);
            }
        }
    }
}

/// Returns the specialization map entries of a kernel, and their data.
fn specialization_entries(kernel: &Kernel) -> (Vec<vk::SpecializationMapEntry>, Vec<u8>) {
    let mut data = Vec::new();
    let constants = kernel.interface.iter().flat_map(|interface| &interface.constants);
    let entries = constants.map(|(id, bytes)| {
        let offset = data.len() as u32;
        data.extend_from_slice(bytes);
        vk::SpecializationMapEntry::default().constant_id(*id).offset(offset).size(bytes.len())
    });
    (entries.collect(), data)
}
