//! The offset of an address in the variable that holds it.

use rspirv::spirv::StorageClass;

use crate::contents::AddressTarget;
use spirv_reader::Specialized;

/// Returns the offset of an address in a variable; `None` if it is elsewhere.
pub fn address_offset_in(specialized: &Specialized<'_>, variable: u32, at: &AddressTarget) -> Option<u64> {
    let module = specialized.module;
    let declared = module.variables.get(&variable)?;
    let decorations = module.decorations_of(variable);
    match at {
        AddressTarget::Push(offset) => (declared.class == StorageClass::PushConstant).then_some(*offset),
        AddressTarget::Buffer((set, binding), offset) => {
            ((decorations.set, decorations.binding) == (Some(*set), Some(*binding))).then_some(*offset)
        }
        AddressTarget::Member(path) => {
            let block = matches!(
                declared.class,
                StorageClass::PushConstant | StorageClass::StorageBuffer | StorageClass::Uniform
            );
            // An unnamed block has the name of its type, or its members have no qualifier.
            let names = [module.display_name(variable), module.display_name(declared.ty)];
            let behind = names.iter().find_map(|name| path.strip_prefix(name.as_str())?.strip_prefix('.'));
            block.then(|| member_offset(specialized, declared.ty, behind.unwrap_or(path)))?
        }
    }
}

/// Returns the offset of a path such as `a.b[2].c`.
fn member_offset(specialized: &Specialized<'_>, mut ty: u32, path: &str) -> Option<u64> {
    let mut offset = 0_u64;
    for word in path.split('.') {
        let (name, elements) = word.split_at(word.find('[').unwrap_or(word.len()));
        let mut steps = vec![specialized.module.member_by_name(ty, name)?];
        for element in elements.split_terminator(']') {
            steps.push(element.strip_prefix('[')?.parse().ok()?);
        }
        for step in steps {
            let part = specialized.part_of(ty, step).ok()?;
            (ty, offset) = (part.ty, offset.checked_add(part.offset)?);
        }
    }
    Some(offset)
}
