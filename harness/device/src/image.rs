//! Images: creation, views, filling and reading back.

use ash::vk;
use gpu_allocator::MemoryLocation;
use gpu_allocator::vulkan::{Allocation, AllocationCreateDesc, AllocationScheme};
use plan::{
    AddressMode, BufferMemory, DeviceError, Image, ImageAccess, ImageFormat, ImageShape, SamplerState,
};

use crate::error::{allocation_error, call_error};
use crate::memory::{DeviceBuffer, MemoryHeap};

/// An image with its memory and view, or the view of a texel buffer.
///
/// [`MemoryHeap::destroy_image`] destroys it. Handles are null if creation failed midway.
#[derive(Default)]
pub(crate) struct DeviceImage {
    raw: vk::Image,
    allocation: Option<Allocation>,
    /// A dedicated allocation, if a memory type was requested.
    dedicated_memory: vk::DeviceMemory,
    pub(crate) view: vk::ImageView,
    pub(crate) buffer_view: vk::BufferView,
    /// The sampler of a combined image sampler; else null.
    pub(crate) sampler: vk::Sampler,
    extent: vk::Extent3D,
    layers: u32,
}

/// The first layer of an image, of one level and one aspect.
const WHOLE_IMAGE: vk::ImageSubresourceRange = vk::ImageSubresourceRange {
    aspect_mask: vk::ImageAspectFlags::COLOR,
    base_mip_level: 0,
    level_count: 1,
    base_array_layer: 0,
    layer_count: 1,
};

/// Returns the format with the number of a format of SPIR-V.
pub(crate) fn texel_format(format: ImageFormat) -> vk::Format {
    use vk::Format as F;
    // In the order of the numbers; the first is that of no format.
    const FORMATS: [vk::Format; 40] = [
        F::UNDEFINED,
        F::R32G32B32A32_SFLOAT,
        F::R16G16B16A16_SFLOAT,
        F::R32_SFLOAT,
        F::R8G8B8A8_UNORM,
        F::R8G8B8A8_SNORM,
        F::R32G32_SFLOAT,
        F::R16G16_SFLOAT,
        F::B10G11R11_UFLOAT_PACK32,
        F::R16_SFLOAT,
        F::R16G16B16A16_UNORM,
        F::A2B10G10R10_UNORM_PACK32,
        F::R16G16_UNORM,
        F::R8G8_UNORM,
        F::R16_UNORM,
        F::R8_UNORM,
        F::R16G16B16A16_SNORM,
        F::R16G16_SNORM,
        F::R8G8_SNORM,
        F::R16_SNORM,
        F::R8_SNORM,
        F::R32G32B32A32_SINT,
        F::R16G16B16A16_SINT,
        F::R8G8B8A8_SINT,
        F::R32_SINT,
        F::R32G32_SINT,
        F::R16G16_SINT,
        F::R8G8_SINT,
        F::R16_SINT,
        F::R8_SINT,
        F::R32G32B32A32_UINT,
        F::R16G16B16A16_UINT,
        F::R8G8B8A8_UINT,
        F::R32_UINT,
        F::A2B10G10R10_UINT_PACK32,
        F::R32G32_UINT,
        F::R16G16_UINT,
        F::R8G8_UINT,
        F::R16_UINT,
        F::R8_UINT,
    ];
    FORMATS.get(format.number() as usize).copied().unwrap_or_default()
}

/// Returns the features of images of each format of a device, by its number.
pub(crate) fn image_features(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
) -> Vec<vk::FormatFeatureFlags> {
    let features = |format: ImageFormat| {
        // SAFETY: the handle comes from this instance.
        let known = unsafe { instance.get_physical_device_format_properties(physical, texel_format(format)) };
        known.optimal_tiling_features
    };
    let numbers = (1..).map_while(ImageFormat::from_spirv);
    std::iter::once(vk::FormatFeatureFlags::empty()).chain(numbers.map(features)).collect()
}

/// Returns the usage of an image, and the features of its format that this needs.
fn image_usage(access: ImageAccess) -> (vk::ImageUsageFlags, vk::FormatFeatureFlags) {
    let sampled = vk::FormatFeatureFlags::SAMPLED_IMAGE;
    let filtered = sampled | vk::FormatFeatureFlags::SAMPLED_IMAGE_FILTER_LINEAR;
    match access {
        ImageAccess::Storage => (vk::ImageUsageFlags::STORAGE, vk::FormatFeatureFlags::STORAGE_IMAGE),
        ImageAccess::Sampled(true) | ImageAccess::Combined(SamplerState { is_linear: true, .. }) => {
            (vk::ImageUsageFlags::SAMPLED, filtered)
        }
        ImageAccess::Sampled(false) | ImageAccess::Combined(_) => (vk::ImageUsageFlags::SAMPLED, sampled),
    }
}

impl MemoryHeap {
    /// Creates a sampler without mip levels.
    pub(crate) fn create_sampler(&self, state: SamplerState) -> Result<vk::Sampler, DeviceError> {
        let filter = if state.is_linear { vk::Filter::LINEAR } else { vk::Filter::NEAREST };
        let mode = match state.address_mode {
            AddressMode::Repeat => vk::SamplerAddressMode::REPEAT,
            AddressMode::Mirror => vk::SamplerAddressMode::MIRRORED_REPEAT,
            AddressMode::Clamp => vk::SamplerAddressMode::CLAMP_TO_EDGE,
        };
        let info = vk::SamplerCreateInfo::default()
            .mag_filter(filter)
            .min_filter(filter)
            .mipmap_mode(vk::SamplerMipmapMode::NEAREST)
            .address_mode_u(mode)
            .address_mode_v(mode)
            .address_mode_w(mode)
            .max_lod(vk::LOD_CLAMP_NONE);
        // SAFETY: the device is alive, and the state needs no feature.
        unsafe { self.raw.create_sampler(&info, None) }.map_err(call_error("vkCreateSampler"))
    }

    /// Creates an image; `buffers` are those of the plan, for texel buffers.
    pub(crate) fn create_image(
        &self,
        image: &Image,
        buffers: &[DeviceBuffer],
        families: &[u32],
    ) -> Result<DeviceImage, DeviceError> {
        let mut texels = DeviceImage::default();
        match self.fill_image(image, buffers, families, &mut texels) {
            Ok(()) => Ok(texels),
            Err(error) => {
                self.destroy_image(&mut texels);
                Err(error)
            }
        }
    }

    fn fill_image(
        &self,
        image: &Image,
        buffers: &[DeviceBuffer],
        families: &[u32],
        texels: &mut DeviceImage,
    ) -> Result<(), DeviceError> {
        let format = texel_format(image.format);
        let (ty, view_type) = match image.shape {
            ImageShape::OneDimensional { .. } => (vk::ImageType::TYPE_1D, vk::ImageViewType::TYPE_1D),
            ImageShape::TwoDimensional { .. } => (vk::ImageType::TYPE_2D, vk::ImageViewType::TYPE_2D),
            ImageShape::Layered { .. } => (vk::ImageType::TYPE_2D, vk::ImageViewType::TYPE_2D_ARRAY),
            ImageShape::ThreeDimensional { .. } => (vk::ImageType::TYPE_3D, vk::ImageViewType::TYPE_3D),
            ImageShape::Texels(buffer) => {
                let number = buffer.0 as usize;
                let buffer = buffers
                    .get(number)
                    .ok_or_else(|| DeviceError::InvalidPlan(format!("no buffer {number}")))?;
                let info = vk::BufferViewCreateInfo::default()
                    .buffer(buffer.raw)
                    .format(format)
                    .range(vk::WHOLE_SIZE);
                // SAFETY: the buffer is this device's, was made for texels, and outlives the view.
                texels.buffer_view = unsafe { self.raw.create_buffer_view(&info, None) }
                    .map_err(call_error("vkCreateBufferView"))?;
                return Ok(());
            }
        };
        let [width, height, depth] = image.shape.size();
        let is_layered = matches!(image.shape, ImageShape::Layered { .. });
        (texels.layers, texels.extent) = if is_layered {
            (depth, vk::Extent3D { width, height, depth: 1 })
        } else {
            (1, vk::Extent3D { width, height, depth })
        };
        let (usage, needed) = image_usage(image.access);
        let features = self.format_features.get(image.format.number() as usize).copied().unwrap_or_default();
        if !features.contains(needed) {
            let lacking = needed & !features;
            return Err(DeviceError::Unsupported(format!("{lacking:?} of images of the format {format:?}")));
        }
        let mut info = vk::ImageCreateInfo::default()
            .image_type(ty)
            .format(format)
            .extent(texels.extent)
            .mip_levels(1)
            .array_layers(texels.layers)
            .samples(vk::SampleCountFlags::TYPE_1)
            .tiling(vk::ImageTiling::OPTIMAL)
            .usage(usage | vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::TRANSFER_DST);
        if families.len() > 1 {
            info = info.sharing_mode(vk::SharingMode::CONCURRENT).queue_family_indices(families);
        }
        // SAFETY: the device is alive, and its features for the format have those of the usage.
        texels.raw = unsafe { self.raw.create_image(&info, None) }.map_err(call_error("vkCreateImage"))?;
        // SAFETY: the image was made by this device.
        let requirements = unsafe { self.raw.get_image_memory_requirements(texels.raw) };
        let dedicated = match image.memory {
            BufferMemory::Typed(kind) => Some(self.find_memory_type(&requirements, kind)?),
            BufferMemory::Private => self.mappable_private_type(&requirements),
            BufferMemory::Device
            | BufferMemory::Readback
            | BufferMemory::Shared
            | BufferMemory::Mapped(_) => None,
        };
        if let Some(index) = dedicated {
            let memory = self.allocate_dedicated_memory(&requirements, index)?;
            texels.dedicated_memory = memory;
            // SAFETY: the memory was made for this image, which is bound once.
            unsafe { self.raw.bind_image_memory(texels.raw, memory, 0) }
                .map_err(call_error("vkBindImageMemory"))?;
            return self.create_view(image, view_type, format, texels);
        }
        let description = AllocationCreateDesc {
            name: image.name,
            requirements,
            location: MemoryLocation::GpuOnly,
            linear: false,
            allocation_scheme: AllocationScheme::GpuAllocatorManaged,
        };
        let allocation = self.allocator.borrow_mut().allocate(&description).map_err(allocation_error)?;
        // SAFETY: the handle is used only to bind the image to the range that was allocated for it.
        let bound =
            unsafe { self.raw.bind_image_memory(texels.raw, allocation.memory(), allocation.offset()) };
        texels.allocation = Some(allocation);
        bound.map_err(call_error("vkBindImageMemory"))?;
        self.create_view(image, view_type, format, texels)
    }

    fn create_view(
        &self,
        image: &Image,
        view_type: vk::ImageViewType,
        format: vk::Format,
        texels: &mut DeviceImage,
    ) -> Result<(), DeviceError> {
        self.set_name(texels.raw, image.name)?;
        let info = vk::ImageViewCreateInfo::default()
            .image(texels.raw)
            .view_type(view_type)
            .format(format)
            .subresource_range(vk::ImageSubresourceRange { layer_count: texels.layers, ..WHOLE_IMAGE });
        // SAFETY: the image is this device's, has memory, and outlives the view.
        texels.view =
            unsafe { self.raw.create_image_view(&info, None) }.map_err(call_error("vkCreateImageView"))?;
        if let ImageAccess::Combined(state) = image.access {
            texels.sampler = self.create_sampler(state)?;
        }
        Ok(())
    }

    /// Destroys an image. Nothing on the device may use it.
    pub(crate) fn destroy_image(&self, texels: &mut DeviceImage) {
        // SAFETY: this device created the handles or they are null, and by the contract of this function
        // nothing uses them.
        unsafe {
            self.raw.destroy_buffer_view(texels.buffer_view, None);
            self.raw.destroy_image_view(texels.view, None);
            self.raw.destroy_sampler(texels.sampler, None);
            self.raw.destroy_image(texels.raw, None);
            self.raw.free_memory(texels.dedicated_memory, None);
        }
        if let Some(allocation) = texels.allocation.take()
            && let Err(error) = self.allocator.borrow_mut().free(allocation)
        {
            tracing::error!(%error, "memory was not given back");
        }
    }
}

/// Records a copy from a buffer to an image. The previous contents are lost, so the old layout is undefined.
pub(crate) fn record_to_image(
    raw: &ash::Device,
    commands: vk::CommandBuffer,
    from: &DeviceBuffer,
    to: &DeviceImage,
) {
    let work = vk::PipelineStageFlags::COMPUTE_SHADER | vk::PipelineStageFlags::TRANSFER;
    let general = vk::ImageMemoryBarrier::default()
        .src_access_mask(vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::TRANSFER_WRITE)
        .dst_access_mask(vk::AccessFlags::TRANSFER_WRITE)
        .old_layout(vk::ImageLayout::UNDEFINED)
        .new_layout(vk::ImageLayout::GENERAL)
        .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
        .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
        .image(to.raw)
        .subresource_range(vk::ImageSubresourceRange { layer_count: to.layers, ..WHOLE_IMAGE });
    // SAFETY: the command buffer is being recorded; the image belongs to the device, and validation ensures
    // that the buffer has a word for each texel.
    unsafe {
        raw.cmd_pipeline_barrier(
            commands,
            work,
            vk::PipelineStageFlags::TRANSFER,
            vk::DependencyFlags::empty(),
            &[],
            &[],
            &[general],
        );
        raw.cmd_copy_buffer_to_image(
            commands,
            from.raw,
            to.raw,
            vk::ImageLayout::GENERAL,
            &[to.full_region()],
        );
    }
}

/// Records a copy of an image's texels to a buffer.
pub(crate) fn record_from_image(
    raw: &ash::Device,
    commands: vk::CommandBuffer,
    from: &DeviceImage,
    to: &DeviceBuffer,
) {
    // SAFETY: as above; the image was filled before, which left it in this layout.
    unsafe {
        raw.cmd_copy_image_to_buffer(
            commands,
            from.raw,
            vk::ImageLayout::GENERAL,
            to.raw,
            &[from.full_region()],
        );
    }
}

impl DeviceImage {
    /// Returns the region of all texels, row by row.
    fn full_region(&self) -> vk::BufferImageCopy {
        vk::BufferImageCopy::default()
            .image_subresource(vk::ImageSubresourceLayers {
                aspect_mask: vk::ImageAspectFlags::COLOR,
                mip_level: 0,
                base_array_layer: 0,
                layer_count: self.layers,
            })
            .image_extent(self.extent)
    }
}
