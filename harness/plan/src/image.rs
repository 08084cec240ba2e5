//! Images of a plan: storage images and storage texel buffers with 32-bit texels.

use crate::resource::{BufferId, BufferMemory};

/// Index into [`Plan::images`](crate::Plan::images).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageId(pub u32);

/// An image that kernels read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Image {
    /// The kind and size.
    pub shape: ImageShape,
    /// The texel format.
    pub format: ImageFormat,
    /// The memory, except for texel buffers: device-local, or of a memory kind.
    pub memory: BufferMemory,
    /// The name in debuggers and errors.
    pub name: &'static str,
}

/// The kind and size of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageShape {
    /// A one-dimensional storage image.
    OneDimensional {
        /// Texels.
        width: u32,
    },
    /// A two-dimensional storage image, optimally tiled.
    TwoDimensional {
        /// Texels in a row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// A storage texel buffer: a view of a buffer's words.
    Texels(BufferId),
}

/// The texel format of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageFormat {
    /// `R32_UINT`.
    Unsigned,
    /// `R32_SINT`.
    Signed,
    /// `R32_SFLOAT`.
    Float,
    /// `R8G8B8A8_UNORM`.
    Rgba8,
    /// `R8G8B8A8_SNORM`.
    Rgba8Snorm,
    /// `R8G8B8A8_UINT`.
    Rgba8Unsigned,
    /// `R8G8B8A8_SINT`.
    Rgba8Signed,
    /// `R16G16_UNORM`.
    Rg16,
    /// `R16G16_SNORM`.
    Rg16Snorm,
    /// `R16G16_UINT`.
    Rg16Unsigned,
    /// `R16G16_SINT`.
    Rg16Signed,
    /// `R16G16_SFLOAT`.
    Rg16Float,
    /// `A2B10G10R10_UNORM_PACK32`.
    Rgb10A2,
    /// `A2B10G10R10_UINT_PACK32`.
    Rgb10A2Unsigned,
}

impl ImageFormat {
    /// Returns the format with this number in SPIR-V's list of image formats.
    pub fn from_spirv(number: u32) -> Option<ImageFormat> {
        Some(match number {
            3 => ImageFormat::Float,
            4 => ImageFormat::Rgba8,
            5 => ImageFormat::Rgba8Snorm,
            7 => ImageFormat::Rg16Float,
            11 => ImageFormat::Rgb10A2,
            12 => ImageFormat::Rg16,
            17 => ImageFormat::Rg16Snorm,
            23 => ImageFormat::Rgba8Signed,
            24 => ImageFormat::Signed,
            26 => ImageFormat::Rg16Signed,
            32 => ImageFormat::Rgba8Unsigned,
            33 => ImageFormat::Unsigned,
            34 => ImageFormat::Rgb10A2Unsigned,
            36 => ImageFormat::Rg16Unsigned,
            _ => return None,
        })
    }
}

impl ImageShape {
    /// Returns the number of texels of an image with its own memory; 0 for a texel buffer.
    pub fn texel_count(self) -> u64 {
        match self {
            ImageShape::OneDimensional { width } => width.into(),
            ImageShape::TwoDimensional { width, height } => u64::from(width) * u64::from(height),
            ImageShape::Texels(_) => 0,
        }
    }
}
