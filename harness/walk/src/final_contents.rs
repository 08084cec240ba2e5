//! The contents of buffers and images after a walk.

use litmus::StorageClass;

use super::report::FinalBuffer;
use super::state::Interpreter;
use super::texels::pack_texels;
use super::value::{ConcreteValue, INPUT_MASK, LAST_VALUE, OPAQUE, UNDEFINED};

impl Interpreter<'_> {
    /// Returns the writable buffers with their current contents.
    pub(super) fn final_buffers(&self) -> Vec<FinalBuffer> {
        let mut all = Vec::new();
        for (variable, slot) in &self.program.variables {
            let Some(ConcreteValue::Pointer(pointer)) = self.globals.get(*slot) else { continue };
            let Some((set, binding)) = self.program.module.descriptor_of(*variable) else { continue };
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
