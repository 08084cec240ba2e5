//! Names of accessed elements, as the source would spell them.

use spirv_reader::{SpirvOperation, SpirvType, is_synthetic_name};

use entry_point::accessed_variable::accessed_variable;
use entry_point::layout::is_descriptor_array;

use super::state::{Interpreter, InvocationCtx};
use super::value::{ConcretePointer, ConcreteValue};

impl Interpreter<'_> {
    /// Describes an out-of-bounds access, with the element if it is known.
    /// Also returns the name of the accessed object.
    pub(super) fn describe_out_of_bounds(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        what: &str,
        pointer: &ConcretePointer,
    ) -> (String, String) {
        let program = self.program;
        let Some(object) = self.object_mut(ctx, pointer.object) else {
            return (what.to_owned(), String::new());
        };
        let (is_given, own, bytes, named) =
            (object.has_known_length, object.name.clone(), object.bytes.len(), object.class.is_some());
        let name = match (own.as_str(), object.variable) {
            // Private objects store no name, because a grid has too many of them.
            ("", variable) if program.module.variables.contains_key(&variable) => {
                program.module.display_name(variable)
            }
            ("", _) => "a variable of the function".to_owned(),
            (name, _) => name.to_owned(),
        };
        if pointer.is_out_of_bounds {
            let element = self.out_of_bounds_element(ctx);
            let element = element.map(|(element, count)| format!(": `{element}`, of {count} elements"));
            let element = element.unwrap_or_default();
            return (format!("{what} beyond the end of an array in `{name}`{element}"), name);
        }
        let offset = pointer.offset as i64;
        if !is_given {
            let at = if offset < 0 { "before byte 0 or".to_owned() } else { format!("at byte {offset},") };
            return (format!("{what} of `{name}` {at} beyond any buffer"), name);
        }
        let element = (named && offset > 0).then(|| self.element_name(ctx, pointer, pointer.offset));
        let element = element.filter(|element| *element != own);
        let element = element.map_or(String::new(), |element| format!(": `{element}`"));
        (format!("{what} at byte {offset} of `{name}`, which has {bytes}{element}"), name)
    }

    /// Returns the element that a chain addresses beyond the end of its array, and the array's length.
    fn out_of_bounds_element(&self, ctx: &InvocationCtx<'_>) -> Option<(String, u64)> {
        let program = self.program;
        let frame = ctx.workgroup.invocations[ctx.index].frames.last()?;
        let code = &program.functions.get(frame.function)?.code;
        let to = code.get(frame.at)?.operation.accessed_pointer()?;
        let (base, indices) = code.iter().find_map(|instruction| match instruction.operation {
            SpirvOperation::AccessChain { base, element: None, indices } if instruction.raw.result == to => {
                Some((base, indices))
            }
            _ => None,
        })?;
        let mut ty = program.module.variables.get(&base)?.ty;
        let mut name = program.module.variable_name(base, ty);
        for id in indices {
            let ConcreteValue::Bits(bits, _) = *self.single_slot_value(ctx, *id).ok()? else { return None };
            let width = program.number_bits(*id);
            let index = arithmetic::sign_extend(bits, width);
            if let SpirvType::Struct { members } = program.module.types.get(&ty)? {
                let member = members.get(usize::try_from(index).ok()?)?;
                let known = program.module.member_names.get(&(ty, index as u32));
                match known.filter(|known| !is_synthetic_name(known)) {
                    Some(known) => name += &format!(".{known}"),
                    None if members.len() == 1 => {}
                    None => name += &format!("[{index}]"),
                }
                ty = *member;
                continue;
            }
            let part = program.specialized.part_of(ty, 0).ok()?;
            name += &format!("[{index}]");
            if let Some(count) = part.length.filter(|count| index as u64 >= *count) {
                return Some((name, count));
            }
            ty = part.ty;
        }
        None
    }

    /// Returns the name of the element at an offset, such as `data[3].flag`.
    pub(super) fn element_name(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        pointer: &ConcretePointer,
        offset: u64,
    ) -> String {
        let program = self.program;
        let Some(object) = self.object_mut(ctx, pointer.object) else { return String::new() };
        let mut name = object.name.clone();
        let mut variable = object.variable;
        if let Some(texels) = object.texels {
            let texel = offset / 16;
            let [width, height, _] = texels.size.map(|size| u64::from(size.max(1)));
            let at = [texel % width, texel / width % height, texel / width / height];
            let at: Vec<String> = at.iter().take(texels.axes).map(u64::to_string).collect();
            return format!("{name}[{}]", at.join(","));
        }
        // Several blocks may share a binding: the name is that of the accessed one.
        let place = self.program.source_place(self.current_site(&ctx.workgroup.invocations[ctx.index])).1;
        let binding =
            |id: u32| program.module.decorations.get(&id).and_then(|of| Some((of.set, of.binding?)));
        let other = accessed_variable(program.module, place).filter(|other| *other != variable);
        let type_of = |id: u32| program.module.variables.get(&id).map_or(0, |variable| variable.ty);
        if let Some(other) = other.filter(|other| {
            binding(*other).is_some()
                && binding(*other) == binding(variable)
                && !is_descriptor_array(program.module, variable, type_of(variable))
        }) {
            variable = other;
            let ty = type_of(other);
            name = program.module.variable_name(other, ty);
        }
        let Some(mut ty) = program.module.variables.get(&variable).map(|variable| variable.ty) else {
            return format!("{name}+{offset}");
        };
        let mut rest = offset;
        while let Some(
            outer @ (SpirvType::Array { .. } | SpirvType::RuntimeArray { .. } | SpirvType::Struct { .. }),
        ) = program.module.types.get(&ty)
        {
            let Ok(Some((index, part))) = program.specialized.part_at(ty, rest, u64::MAX) else { break };
            if !matches!(outer, SpirvType::Struct { .. }) {
                name += &format!("[{index}]");
            } else if let Some(known) = program.module.member_names.get(&(ty, index as u32))
                && !is_synthetic_name(known)
            {
                name += &format!(".{known}");
            }
            (ty, rest) = (part.ty, rest - part.offset);
        }
        name
    }
}
