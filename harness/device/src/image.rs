//! Images: creation, views, filling and reading back.

use ash::vk;
use gpu_allocator::MemoryLocation;
use gpu_allocator::vulkan::{Allocation, AllocationCreateDesc, AllocationScheme};
use plan::{BufferMemory, DeviceError, Image, ImageFormat, ImageShape};

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
    width: u32,
    height: u32,
}

/// The only subresource of an image: one level, one layer and one aspect.
const WHOLE_IMAGE: vk::ImageSubresourceRange = vk::ImageSubresourceRange {
    aspect_mask: vk::ImageAspectFlags::COLOR,
    base_mip_level: 0,
    level_count: 1,
    base_array_layer: 0,
    layer_count: 1,
};

impl MemoryHeap {
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
        let format = match image.format {
            ImageFormat::Unsigned => vk::Format::R32_UINT,
            ImageFormat::Signed => vk::Format::R32_SINT,
            ImageFormat::Float => vk::Format::R32_SFLOAT,
            ImageFormat::Rgba8 => vk::Format::R8G8B8A8_UNORM,
            ImageFormat::Rgba8Snorm => vk::Format::R8G8B8A8_SNORM,
            ImageFormat::Rgba8Unsigned => vk::Format::R8G8B8A8_UINT,
            ImageFormat::Rgba8Signed => vk::Format::R8G8B8A8_SINT,
            ImageFormat::Rg16 => vk::Format::R16G16_UNORM,
            ImageFormat::Rg16Snorm => vk::Format::R16G16_SNORM,
            ImageFormat::Rg16Unsigned => vk::Format::R16G16_UINT,
            ImageFormat::Rg16Signed => vk::Format::R16G16_SINT,
            ImageFormat::Rg16Float => vk::Format::R16G16_SFLOAT,
            ImageFormat::Rgb10A2 => vk::Format::A2B10G10R10_UNORM_PACK32,
            ImageFormat::Rgb10A2Unsigned => vk::Format::A2B10G10R10_UINT_PACK32,
        };
        let (ty, view_type, width, height) = match image.shape {
            ImageShape::OneDimensional { width } => {
                (vk::ImageType::TYPE_1D, vk::ImageViewType::TYPE_1D, width, 1)
            }
            ImageShape::TwoDimensional { width, height } => {
                (vk::ImageType::TYPE_2D, vk::ImageViewType::TYPE_2D, width, height)
            }
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
        (texels.width, texels.height) = (width, height);
        let mut info = vk::ImageCreateInfo::default()
            .image_type(ty)
            .format(format)
            .extent(vk::Extent3D { width, height, depth: 1 })
            .mip_levels(1)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .tiling(vk::ImageTiling::OPTIMAL)
            .usage(
                vk::ImageUsageFlags::STORAGE
                    | vk::ImageUsageFlags::TRANSFER_SRC
                    | vk::ImageUsageFlags::TRANSFER_DST,
            );
        if families.len() > 1 {
            info = info.sharing_mode(vk::SharingMode::CONCURRENT).queue_family_indices(families);
        }
        // SAFETY: the device is alive. Every device supports storage images of these formats and sizes, or
        // does with `shaderStorageImageExtendedFormats`, which user kernels require by their capabilities.
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
            .subresource_range(WHOLE_IMAGE);
        // SAFETY: the image is this device's, has memory, and outlives the view.
        texels.view =
            unsafe { self.raw.create_image_view(&info, None) }.map_err(call_error("vkCreateImageView"))?;
        Ok(())
    }

    /// Destroys an image. Nothing on the device may use it.
    pub(crate) fn destroy_image(&self, texels: &mut DeviceImage) {
        // SAFETY: this device created the handles or they are null, and by the contract of this function
        // nothing uses them.
        unsafe {
            self.raw.destroy_buffer_view(texels.buffer_view, None);
            self.raw.destroy_image_view(texels.view, None);
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
        .subresource_range(WHOLE_IMAGE);
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
                layer_count: 1,
            })
            .image_extent(vk::Extent3D { width: self.width, height: self.height, depth: 1 })
    }
}
