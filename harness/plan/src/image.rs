//! Images of a plan: storage images and storage texel buffers whose texels have one component of 32 bits.

use crate::{BufferId, Memory};

/// Index into [`Plan::images`](crate::Plan::images).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageId(pub u32);

/// An image that kernels read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Image {
    /// What it is.
    pub shape: ImageShape,
    /// What a texel holds.
    pub format: ImageFormat,
    /// Where it lives, unless it is a texel buffer: in device-local memory, or in memory of a kind.
    pub memory: Memory,
    /// The name under which debuggers and errors show it.
    pub name: &'static str,
}

/// What an image is.
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
    /// A storage texel buffer, which shows the words of a buffer.
    Texels(BufferId),
}

/// What a texel holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageFormat {
    /// `R32_UINT`.
    Unsigned,
    /// `R32_SFLOAT`.
    Float,
}

impl ImageShape {
    /// Texels of an image with memory of its own; none for a texel buffer.
    pub fn texels(self) -> u64 {
        match self {
            ImageShape::OneDimensional { width } => width.into(),
            ImageShape::TwoDimensional { width, height } => u64::from(width) * u64::from(height),
            ImageShape::Texels(_) => 0,
        }
    }
}
