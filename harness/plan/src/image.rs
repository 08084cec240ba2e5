//! Images of a plan: storage images, sampled images and storage texel buffers; samplers.

use serde::{Deserialize, Serialize};

use crate::resource::{BufferId, BufferMemory};

/// Index into [`Plan::images`](crate::Plan::images).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageId(pub u32);

/// An image that kernels access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Image {
    /// The kind and size.
    pub shape: ImageShape,
    /// The texel format.
    pub format: ImageFormat,
    /// The accesses of kernels.
    pub access: ImageAccess,
    /// The memory, except for texel buffers: device-local, or of a memory kind.
    pub memory: BufferMemory,
    /// The name in debuggers and errors.
    pub name: &'static str,
}

/// The accesses of kernels to an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageAccess {
    /// Reads and writes of texels.
    Storage,
    /// Reads, also by samplers of other bindings. True if one of these filters.
    Sampled(bool),
    /// Reads by the sampler of the same binding.
    Combined(SamplerState),
}

/// The state of a sampler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplerState {
    /// True for linear filters, false for the nearest texel.
    pub is_linear: bool,
    /// The texels outside of the image.
    pub address_mode: AddressMode,
}

/// The texels that a sampler returns outside of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressMode {
    /// Those of the repeated image.
    Repeat,
    /// Those of the image, mirrored at each edge.
    Mirror,
    /// Those of the edge.
    Clamp,
}

/// The kind and size of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageShape {
    /// A one-dimensional image.
    OneDimensional {
        /// Texels.
        width: u32,
    },
    /// A two-dimensional image, optimally tiled.
    TwoDimensional {
        /// Texels in a row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// Two-dimensional layers.
    Layered {
        /// Texels in a row, rows, and layers.
        size: [u32; 3],
    },
    /// A three-dimensional image.
    ThreeDimensional {
        /// Texels in a row, rows, and slices.
        size: [u32; 3],
    },
    /// A storage texel buffer: a view of a buffer's words.
    Texels(BufferId),
}

/// The texel format of an image: a format of SPIR-V with texels of 1 to 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageFormat(u32);

/// Bytes of a texel of each format, by its number.
const TEXEL_BYTES: [u64; 40] = [
    0, 16, 8, 4, 4, 4, 8, 4, 4, 2, 8, 4, 4, 2, 2, 1, 8, 4, 2, 2, 1, 16, 8, 4, 4, 8, 4, 2, 2, 1, 16, 8, 4, 4,
    4, 8, 4, 2, 2, 1,
];

impl ImageFormat {
    /// `R32f`.
    pub const FLOAT: ImageFormat = ImageFormat(3);
    /// `R32i`.
    pub const SIGNED: ImageFormat = ImageFormat(24);
    /// `R32ui`.
    pub const UNSIGNED: ImageFormat = ImageFormat(33);

    /// Returns the format with this number in SPIR-V's list of image formats.
    pub fn from_spirv(number: u32) -> Option<ImageFormat> {
        (1..TEXEL_BYTES.len() as u32).contains(&number).then_some(ImageFormat(number))
    }

    /// Returns its number in that list.
    pub fn number(self) -> u32 {
        self.0
    }

    /// Returns the size of a texel.
    pub fn texel_bytes(self) -> u64 {
        TEXEL_BYTES.get(self.0 as usize).copied().unwrap_or_default()
    }
}

impl Image {
    /// Returns the words of its texels in a buffer; 0 for a texel buffer.
    pub fn words(&self) -> u64 {
        (self.shape.texel_count() * self.format.texel_bytes()).div_ceil(4)
    }
}

impl ImageShape {
    /// Returns the texels in a row, rows, and slices or layers; zeros for a texel buffer.
    pub fn size(self) -> [u32; 3] {
        match self {
            ImageShape::OneDimensional { width } => [width, 1, 1],
            ImageShape::TwoDimensional { width, height } => [width, height, 1],
            ImageShape::Layered { size } | ImageShape::ThreeDimensional { size } => size,
            ImageShape::Texels(_) => [0; 3],
        }
    }

    /// Returns the number of texels of an image with its own memory; 0 for a texel buffer.
    pub fn texel_count(self) -> u64 {
        self.size().into_iter().map(u64::from).product()
    }
}
