//! What buffers hold when a walk has ended.

use litmus::StorageClass;

use super::FinalBuffer;
use super::machine::Machine;
use super::value::Value;

impl Machine<'_> {
    /// The buffers that may be written, with what they hold now.
    pub(super) fn finals(&self) -> Vec<FinalBuffer> {
        let mut all = Vec::new();
        for (variable, slot) in &self.program.variables {
            let Some(Value::Pointer(pointer)) = self.globals.get(*slot) else { continue };
            let decorations = self.program.module.decorations(*variable);
            let (Some(binding), set) = (decorations.binding, decorations.set.unwrap_or(0)) else { continue };
            let one = [pointer.object];
            let objects = self.descriptors.get(&pointer.object).map_or(&one[..], |array| &array.objects);
            for (element, object) in (0..).zip(objects) {
                let Some(object) = self.objects.get(*object as usize) else { continue };
                let known = all.iter().any(|known: &FinalBuffer| known.at == (set, binding, element));
                if known || object.class != Some(StorageClass::Buffer) || object.texels.is_some() {
                    continue;
                }
                let open = object.taint.iter().position(|taint| *taint != 0);
                all.push(FinalBuffer { at: (set, binding, element), bytes: object.bytes.clone(), open });
            }
        }
        all
    }
}
