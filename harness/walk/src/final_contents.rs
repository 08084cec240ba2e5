//! The contents of buffers and images after a walk.

use arithmetic::TexelFormat;
use litmus::StorageClass;

use super::image::{TEXEL_BYTES, component_bytes};
use super::report::FinalBuffer;
use super::setup::little_endian;
use super::state::Interpreter;
use super::value::{ConcreteValue, INPUT_MASK, LAST_VALUE, OPAQUE, UNDEFINED};

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

impl Interpreter<'_> {
    /// Returns the writable buffers with their current contents.
    pub(super) fn final_buffers(&self) -> Vec<FinalBuffer> {
        let mut all = Vec::new();
        for (variable, slot) in &self.program.variables {
            let Some(ConcreteValue::Pointer(pointer)) = self.globals.get(*slot) else { continue };
            let decorations = self.program.module.decorations_of(*variable);
            let (Some(binding), set) = (decorations.binding, decorations.set.unwrap_or(0)) else { continue };
            let one = [pointer.object];
            let objects = self.descriptors.get(&pointer.object).map_or(&one[..], |array| &array.objects);
            for (element, object) in (0..).zip(objects) {
                let Some(object) = self.objects.get(*object as usize) else { continue };
                let known = all.iter().any(|known: &FinalBuffer| known.at == (set, binding, element));
                if known || !matches!(object.class, Some(StorageClass::Buffer | StorageClass::Image)) {
                    continue;
                }
                // An influence of inputs leaves a byte certain.
                let open = object.taint.iter().position(|taint| *taint & !(INPUT_MASK | LAST_VALUE) != 0);
                let open = if self.has_unsettled_load { Some(0) } else { open };
                let bytes = match object.texels {
                    Some(texels) => match texels.format.and_then(|format| pack_texels(format, &object.bytes))
                    {
                        Some(bytes) => bytes,
                        None => continue,
                    },
                    None => object.bytes.clone(),
                };
                let undefined = object.taint.iter().position(|taint| *taint & UNDEFINED != 0);
                let unknown = object.taint.iter().position(|taint| *taint & (OPAQUE | UNDEFINED) != 0);
                let at = (set, binding, element);
                all.push(FinalBuffer {
                    at,
                    bytes,
                    first_open_byte: open,
                    first_unknown_byte: unknown,
                    first_undefined_byte: undefined,
                });
            }
        }
        all
    }
}
