//! The images that stand for locations.

use plan::{BufferId, BufferMemory, Image, ImageAccess, ImageFormat, ImageId, ImageShape};
use shaders::contract::IMAGE_WIDTH;
use shaders::variant::ImageForm as Shape;
use shaders::{ImageBinding, Program, SaltedMemory};

use super::LOCATIONS;

/// The images of a program: one for each kind that its kernels bind.
pub(super) struct ProgramImages {
    bindings: Vec<ImageBinding>,
    pub images: Vec<Image>,
}

impl ProgramImages {
    /// Creates the images with this many texels. Separate ones use the second memory and the second location
    /// buffer.
    pub fn for_program(
        program: &Program,
        words: u64,
        memory: (BufferMemory, BufferMemory),
        separate_locations: Option<BufferId>,
    ) -> ProgramImages {
        let mut bindings: Vec<ImageBinding> = Vec::new();
        for binding in program.kernels().flat_map(|kernel| &kernel.images) {
            if !bindings.contains(binding) {
                bindings.push(*binding);
            }
        }
        let words = u32::try_from(words).unwrap_or(u32::MAX);
        let images: Vec<Image> = bindings
            .iter()
            .map(|binding| Image {
                shape: match binding.shape {
                    Shape::TwoDimensional => {
                        ImageShape::TwoDimensional { width: IMAGE_WIDTH, height: words / IMAGE_WIDTH }
                    }
                    Shape::OneDimensional => ImageShape::OneDimensional { width: words },
                    Shape::TexelBuffer => ImageShape::Texels(
                        separate_locations.filter(|_| binding.is_separate).unwrap_or(LOCATIONS),
                    ),
                },
                format: if binding.is_float { ImageFormat::FLOAT } else { ImageFormat::UNSIGNED },
                access: ImageAccess::Storage,
                memory: if binding.is_separate { memory.1 } else { memory.0 },
                name: "location texels",
            })
            .collect();
        ProgramImages { bindings, images }
    }

    pub fn image_id(&self, binding: ImageBinding) -> Option<ImageId> {
        self.bindings.iter().position(|known| *known == binding).map(|number| ImageId(number as u32))
    }

    /// Returns the images with final values and their storages: at most one separate image and one other.
    pub fn final_value_images(&self, program: &Program) -> Vec<(ImageId, ImageBinding, Vec<u32>)> {
        let Some(float) = program.are_final_images_float() else { return Vec::new() };
        let of_kind = |apart: bool| {
            let storages: Vec<u32> = program
                .image_storages()
                .into_iter()
                .filter(|s| program.separate_storages().contains(s) == apart)
                .collect();
            let wanted = |binding: &&ImageBinding| binding.is_float == float && binding.is_separate == apart;
            let binding = self.bindings.iter().find(wanted)?;
            Some((self.image_id(*binding)?, *binding, storages))
        };
        [false, true].into_iter().filter_map(of_kind).collect()
    }

    /// Returns the images other than texel buffers.
    pub fn non_texel_images(&self) -> impl Iterator<Item = (ImageId, ImageBinding)> {
        let all = (0..).map(ImageId).zip(self.bindings.iter().copied());
        all.filter(|(_, binding)| binding.shape != Shape::TexelBuffer)
    }

    /// Adds the texel buffers that are views of the second location buffer to the numbered memories.
    pub fn add_salted_views(&self, numbered: &mut Vec<(SaltedMemory, u32)>) {
        let second = numbered
            .iter()
            .find(|(memory, _)| *memory == SaltedMemory::SeparateLocations)
            .map(|(_, own)| *own);
        let view = |binding: &&ImageBinding| binding.shape == Shape::TexelBuffer && binding.is_separate;
        let views = self.bindings.iter().filter(view).map(|binding| SaltedMemory::Image(*binding));
        numbered.extend(views.zip(std::iter::repeat(second.unwrap_or(0))));
    }
}
