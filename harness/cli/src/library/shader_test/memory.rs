//! Memory of slices, formats of texels, and conflicts between dispatches.

use std::collections::BTreeMap;

use arithmetic::TexelFormat;
use bytemuck::{NoUninit, cast_slice};
use walk::ResourceAccess;

use super::{Descriptor, ShaderTestError};

/// Contents of a buffer or an image.
#[derive(Clone, Debug)]
pub(super) struct BoundMemory {
    pub(super) bytes: Vec<u8>,
    pub(super) element_bytes: usize,
    pub(super) element_type: &'static str,
    pub(super) image: Option<(PixelFormat, [u32; 3])>,
}

/// A format of texels. The components are in the order of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of WGSL")]
#[non_exhaustive]
#[repr(u32)]
pub enum PixelFormat {
    Rgba32Float = 1,
    Rgba16Float = 2,
    R32Float = 3,
    Rgba8Unorm = 4,
    Rgba8Snorm = 5,
    Rg32Float = 6,
    R8Unorm = 15,
    Rgba32Sint = 21,
    Rgba16Sint = 22,
    Rgba8Sint = 23,
    R32Sint = 24,
    Rg32Sint = 25,
    Rgba32Uint = 30,
    Rgba16Uint = 31,
    Rgba8Uint = 32,
    R32Uint = 33,
    Rg32Uint = 35,
}

impl PixelFormat {
    pub(super) fn texels(self) -> Option<TexelFormat> {
        TexelFormat::from_spirv_format(self as u32)
    }
}

impl BoundMemory {
    pub(super) fn new<T: NoUninit>(data: &[T], image: Option<(PixelFormat, [u32; 3])>) -> BoundMemory {
        let (element_bytes, element_type) = (size_of::<T>().max(1), std::any::type_name::<T>());
        BoundMemory { bytes: cast_slice(data).to_vec(), element_bytes, element_type, image }
    }

    /// Returns the type of the numbers of the slice, also in arrays; `None` for bytes and structures.
    pub(super) fn number_type(&self) -> Option<&'static str> {
        let element = self.element_type.trim_start_matches('[').split(';').next()?;
        let name = element.rsplit("::").next()?;
        ["i16", "u16", "f16", "i32", "u32", "f32", "i64", "u64", "f64"]
            .into_iter()
            .find(|known| *known == name)
    }

    pub(super) fn check_size(&self, (set, binding): Descriptor) -> Result<(), ShaderTestError> {
        let Some((format, size)) = self.image else { return Ok(()) };
        let texel = format.texels().map_or(0, TexelFormat::texel_bytes);
        let expected = size.iter().fold(texel as u128, |all, axis| all * u128::from(*axis));
        let wrong = match self.bytes.len() {
            _ if expected == 0 => format!("an image of {size:?} texels; expected positive sizes"),
            given if given as u128 == expected => return Ok(()),
            given => {
                format!("{given} bytes; expected {expected} for an image of {size:?} texels of {texel} bytes")
            }
        };
        Err(ShaderTestError::Input(format!("set {set}, binding {binding}: {wrong}")))
    }
}

/// Two accesses of one byte by dispatches that no barrier orders.
pub(super) struct Hazard {
    /// The first descriptor of the memory.
    pub(super) at: Descriptor,
    pub(super) byte: u64,
    pub(super) first_writes: bool,
    pub(super) second_writes: bool,
}

impl Hazard {
    /// Describes the accesses of the second and the first dispatch.
    pub(super) fn describe(&self) -> &'static str {
        match (self.first_writes, self.second_writes) {
            (true, false) => "reads what is written by",
            (true, true) => "writes what is written by",
            (false, _) => "writes what is read by",
        }
    }
}

/// Returns the first byte that two dispatches access although no barrier orders them.
pub(super) fn find_hazard(
    before: &BTreeMap<Descriptor, ResourceAccess>,
    after: &BTreeMap<Descriptor, ResourceAccess>,
) -> Option<Hazard> {
    let overlap = |one: &[(u64, u64)], other: &[(u64, u64)]| {
        let pairs = one
            .iter()
            .flat_map(|one| other.iter().map(move |other| (one.0.max(other.0), one.1.min(other.1))));
        pairs.filter(|(start, end)| start < end).map(|(start, _)| start).min()
    };
    before.iter().find_map(|(at, earlier)| {
        let later = after.get(at)?;
        [(true, false), (true, true), (false, true)].into_iter().find_map(|(first_writes, second_writes)| {
            let first = if first_writes { &earlier.writes } else { &earlier.reads };
            let byte = overlap(first, if second_writes { &later.writes } else { &later.reads })?;
            Some(Hazard { at: *at, byte, first_writes, second_writes })
        })
    })
}
