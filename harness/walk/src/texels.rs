//! Texels in the memory of a walk, of which each has four components, and as a device stores them.

use arithmetic::TexelFormat;
use entry_point::inputs::TexelInput;

/// Bytes per texel.
pub(super) const TEXEL_BYTES: u64 = 16;

/// Returns the bytes of a texel component.
pub(super) fn component_bytes(format: TexelFormat) -> u32 {
    format.number_bits() / 8
}

/// Returns the initial texels as the format stores them; `None` for an unknown fill word.
pub fn initial_texels(given: &TexelInput, count: u64, format: Option<TexelFormat>) -> Option<Vec<u8>> {
    let mut bytes = given.to_bytes(count * TEXEL_BYTES)?;
    let Some(format) = format else { return Some(bytes) };
    for texel in bytes.chunks_exact_mut(TEXEL_BYTES as usize) {
        for (index, part) in texel.chunks_exact_mut(component_bytes(format) as usize).enumerate() {
            let (kept, _) = format.quantize(index, little_endian(part));
            part.copy_from_slice(&kept.to_le_bytes()[..part.len()]);
        }
    }
    Some(bytes)
}

/// Decodes up to 8 little-endian bytes.
pub fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// Packs texels as a device stores them; `None` for formats that devices round differently.
pub fn pack_texels(format: TexelFormat, texels: &[u8]) -> Option<Vec<u8>> {
    let mut packed = Vec::with_capacity(texels.len());
    for texel in texels.chunks_exact(TEXEL_BYTES as usize) {
        let mut parts = texel.chunks_exact(component_bytes(format) as usize).map(little_endian);
        let components = std::array::from_fn(|_| parts.next().unwrap_or(0));
        packed.extend_from_slice(&format.pack(components)?.to_le_bytes()[..format.texel_bytes()]);
    }
    Some(packed)
}

/// Unpacks texels of [`pack_texels`] to four components each.
pub fn unpack_texels(format: TexelFormat, packed: &[u8]) -> Vec<u8> {
    let mut texels = Vec::with_capacity(packed.len());
    for texel in packed.chunks_exact(format.texel_bytes()) {
        let texel = texel.iter().rev().fold(0, |all, byte| all << 8 | u128::from(*byte));
        let bytes = component_bytes(format) as usize;
        for component in &format.unpack(texel)[..TEXEL_BYTES as usize / bytes] {
            texels.extend_from_slice(&component.to_le_bytes()[..bytes]);
        }
    }
    texels
}
