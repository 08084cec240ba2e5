//! Texts of terms, as a reader of the shader would write them.

use rspirv::spirv::StorageClass;
use spirv_reader::{ArgumentPlace, Specialized, SpirvModule, SpirvType, is_synthetic_name};

use crate::execute::Summary;
use crate::input::{GivenValue, InputMemory};
use crate::term::{FunctionKind, Operator, TermId};

/// The words of the condition that a number does not wrap, after the number.
pub(crate) const NO_WRAP: &str = " does not wrap";
/// Upper bound on the depth of a text.
const MAX_DEPTH: u32 = 8;

/// Returns the name of a scalar in a variable with a layout, such as `pc.n`.
pub(crate) fn scalar_name(
    module: &SpirvModule,
    specialized: &Specialized<'_>,
    variable: u32,
    offset: u64,
) -> String {
    let Some(declared) = module.variables.get(&variable) else { return format!("%{variable}") };
    let binding = module.decorations_of(variable);
    let argument = module.kernel_arguments.iter().find(|argument| match argument.place {
        ArgumentPlace::Push(from, size) => {
            declared.class == StorageClass::PushConstant && (from..from + size).contains(&offset)
        }
        ArgumentPlace::Block((set, at), from, size) => {
            (binding.set, binding.binding) == (Some(set), Some(at)) && (from..from + size).contains(&offset)
        }
        ArgumentPlace::Resource(_) | ArgumentPlace::Workgroup(_) => false,
    });
    if let Some(argument) = argument {
        return argument.name.clone();
    }
    let is_named = module.names.get(&variable).is_some_and(|name| !is_synthetic_name(name));
    let mut name = if is_named { module.display_name(variable) } else { String::new() };
    let (mut ty, mut rest) = (declared.ty, offset);
    while let Ok(Some((index, part))) = specialized.part_at(ty, rest, u64::MAX) {
        match module.types.get(&ty) {
            Some(SpirvType::Struct { .. }) => {
                let member = module.member_names.get(&(ty, index as u32)).map_or("", String::as_str);
                if !is_synthetic_name(member) {
                    name += if name.is_empty() { "" } else { "." };
                    name += member;
                } else if !module.has_one_member(ty) {
                    name += &format!("[{index}]");
                }
            }
            Some(SpirvType::Vector { .. }) => {
                name += &format!(".{}", ["x", "y", "z", "w"].get(index as usize).copied().unwrap_or("?"));
            }
            _ => name += &format!("[{index}]"),
        }
        rest = rest.saturating_sub(part.offset);
        ty = part.ty;
        if specialized.is_scalar(ty).unwrap_or(true) {
            break;
        }
    }
    if name.is_empty() || name.starts_with('[') {
        name.insert_str(0, &variable_name(module, variable));
    }
    name
}

impl Summary<'_> {
    /// Returns a given scalar of a read-only variable.
    pub fn given_scalar(&mut self, variable: u32, element: u64, offset: u64, width: u32) -> Option<TermId> {
        let memory = InputMemory::of_variable(self.module, variable, element);
        let byte = |at: u64| {
            let mut ranges = self.given.iter().filter(|range| range.0 == memory);
            ranges.find_map(|(_, from, bytes)| bytes.get(at.checked_sub(*from)? as usize))
        };
        let bytes = u64::from(width / 8);
        let bits =
            (0..bytes).rev().try_fold(0, |bits, at| Some(bits << 8 | u64::from(*byte(offset + at)?)))?;
        let value = GivenValue::new(scalar_type(self, variable, offset), bits, width);
        self.used.insert(scalar_name(self.module, self.specialized, variable, offset), value);
        Some(self.terms.constant(width, bits))
    }

    /// Returns true if options set a part of a variable.
    pub fn is_given(&self, variable: u32) -> bool {
        let memory = |element| InputMemory::of_variable(self.module, variable, element);
        self.given.iter().any(|range| match range.0 {
            InputMemory::Buffer(.., element) => range.0 == memory(element),
            InputMemory::PushConstants => false,
        })
    }
}

/// Returns the name of an input, or of the size of the grid or of a buffer.
pub(crate) fn symbol_name(summary: &Summary<'_>, id: TermId) -> Option<String> {
    let term = summary.terms.term(id);
    match *summary.terms.kind_of(id)? {
        FunctionKind::GroupCount(axis) => Some(format!("groups.{}", ["x", "y", "z"][axis.min(2)])),
        FunctionKind::Specialization(id) => {
            let number = summary.module.decorations_of(id).specialization;
            let number = number.filter(|_| summary.module.source_name(id).is_none());
            Some(number.map_or_else(|| summary.module.display_name(id), |number| format!("spec[{number}]")))
        }
        FunctionKind::BufferElements(variable) => {
            Some(format!("{}.length()", variable_name(summary.module, variable)))
        }
        FunctionKind::Contents(variable, _) => {
            let offsets: Option<Vec<u64>> =
                term.arguments.iter().map(|one| summary.terms.constant_of(*one)).collect();
            Some(scalar_name(summary.module, summary.specialized, variable, *offsets?.last()?))
        }
        _ => None,
    }
}

/// Returns true for an input or specialization constant whose type is a signed integer.
pub(crate) fn is_signed(summary: &Summary<'_>, id: TermId) -> bool {
    let (module, term) = (summary.module, summary.terms.term(id));
    let ty = match summary.terms.kind_of(id) {
        Some(FunctionKind::Specialization(id)) => {
            module.constants.get(id).and_then(|(ty, _)| module.types.get(ty))
        }
        Some(FunctionKind::Contents(variable, _)) => {
            let offset = term.arguments.last().and_then(|offset| summary.terms.constant_of(*offset));
            offset.and_then(|offset| scalar_type(summary, *variable, offset))
        }
        _ => None,
    };
    matches!(ty, Some(SpirvType::Integer { signed: true, .. }))
}

/// Returns the type of a scalar in a variable.
pub(crate) fn scalar_type<'m>(summary: &Summary<'m>, variable: u32, offset: u64) -> Option<&'m SpirvType> {
    let (mut ty, mut rest) = (summary.module.variables.get(&variable)?.ty, offset);
    while let Ok(Some((_, part))) = summary.specialized.part_at(ty, rest, u64::MAX) {
        (ty, rest) = (part.ty, rest.saturating_sub(part.offset));
    }
    summary.module.types.get(&ty)
}

/// Returns the condition that no product or sum in a term wraps.
///
/// Differences and signed numbers are exact only if they are not negative, which the text says.
pub(crate) fn wrap_text(summary: &Summary<'_>, id: TermId) -> String {
    let (mut is_unsigned, terms) = (true, &summary.terms);
    terms.for_each_subterm(&[id], |part| {
        let term = terms.term(part);
        let has_difference = match &term.operator {
            Operator::Sum { coefficients, constant } => {
                let mut all = coefficients.iter().chain([constant]);
                all.any(|one| arithmetic::sign_extend(*one, term.width) < 0)
            }
            _ => false,
        };
        is_unsigned &= !has_difference && !is_signed(summary, part);
    });
    let width = match terms.term(id).width {
        32 => String::new(),
        width => format!(" in {width} bits"),
    };
    let suffix = if is_unsigned { "" } else { " as an unsigned number" };
    format!("{}{NO_WRAP}{width}{suffix}", term_text(summary, id))
}

/// Returns the name of a variable, or of its block.
pub(crate) fn variable_name(module: &SpirvModule, id: u32) -> String {
    let ty = module.variables.get(&id).map_or(0, |variable| variable.ty);
    module.source_name_of_variable(id, ty).map_or_else(|| module.place_name(id), str::to_owned)
}

/// Returns the text of a term.
pub(crate) fn term_text(summary: &Summary<'_>, id: TermId) -> String {
    text_within(summary, id, 0)
}

fn text_within(summary: &Summary<'_>, id: TermId, depth: u32) -> String {
    if let Some(form) = summary.closed_forms.iter().find(|form| form.terms[0] == id) {
        return form.name.clone();
    }
    let term = summary.terms.term(id);
    if depth > MAX_DEPTH {
        return "…".to_owned();
    }
    let part = |index: usize| text_within(summary, term.arguments[index], depth + 1);
    let infix = |operator: &str| format!("({} {operator} {})", part(0), part(1));
    match &term.operator {
        Operator::Constant(value) => value.to_string(),
        Operator::Apply(function) => symbol_name(summary, id).unwrap_or_else(|| {
            let axis_name = |axis: usize| ["x", "y", "z"][axis.min(2)];
            match &summary.terms.function(*function).kind {
                FunctionKind::LocalId(axis) => format!("local.{}", axis_name(*axis)),
                FunctionKind::GroupId(axis) => format!("group.{}", axis_name(*axis)),
                FunctionKind::Contents(variable, _) => {
                    format!("{}[…]", variable_name(summary.module, *variable))
                }
                FunctionKind::Iteration(_) | FunctionKind::LastIteration(_) => "iteration".to_owned(),
                FunctionKind::GroupCount(_)
                | FunctionKind::Subgroup(_)
                | FunctionKind::Elected
                | FunctionKind::Specialization(_)
                | FunctionKind::BufferElements(_)
                | FunctionKind::Carried
                | FunctionKind::Computation(_)
                | FunctionKind::Arbitrary
                | FunctionKind::Unwritten => "value".to_owned(),
            }
        }),
        Operator::Sum { coefficients, constant } => {
            if let Some(global) = global_id(summary, id) {
                return global;
            }
            let mut text = String::new();
            for (index, coefficient) in coefficients.iter().enumerate() {
                let signed = arithmetic::sign_extend(*coefficient, term.width);
                let sign = if signed < 0 { " - " } else { " + " };
                text += if text.is_empty() && signed > 0 { "" } else { sign };
                let factor = signed.unsigned_abs();
                text += &if factor == 1 { part(index) } else { format!("{factor} * {}", part(index)) };
            }
            let constant = arithmetic::sign_extend(*constant, term.width);
            match constant {
                0 => text,
                constant if constant < 0 => format!("{text} - {}", constant.unsigned_abs()),
                constant => format!("{text} + {constant}"),
            }
        }
        Operator::Multiply => {
            let factor = |index: usize| {
                let text = part(index);
                if text.contains(' ') && !text.starts_with('(') { format!("({text})") } else { text }
            };
            format!("{} * {}", factor(0), factor(1))
        }
        Operator::Divide | Operator::DivideSigned => infix("/"),
        Operator::Remainder | Operator::RemainderSigned => infix("%"),
        Operator::And => infix("&"),
        Operator::Or => infix("|"),
        Operator::Xor => infix("^"),
        Operator::ShiftLeft => infix("<<"),
        Operator::ShiftRight | Operator::ShiftRightSigned => infix(">>"),
        Operator::Equal => infix("=="),
        Operator::Less | Operator::LessSigned => infix("<"),
        Operator::Extend | Operator::ExtendSigned | Operator::Truncate => part(0),
        Operator::Select if is_modulus(summary, term.arguments[1], term.arguments[2]) => part(1),
        Operator::Select if is_modulus(summary, term.arguments[2], term.arguments[1]) => part(2),
        Operator::Select => format!("({} ? {} : {})", part(0), part(1), part(2)),
        Operator::Not => format!("!{}", part(0)),
        Operator::Every => "…".to_owned(),
    }
}

/// Returns true if two numbers are a remainder and the sum of it and the divisor, of which `OpSMod` is one.
fn is_modulus(summary: &Summary<'_>, rest: TermId, other: TermId) -> bool {
    let (mut moved, constant) = summary.terms.linear_form(other);
    moved.retain(|summand| *summand != (rest, 1));
    let rest = summary.terms.term(rest);
    rest.operator == Operator::RemainderSigned
        && (moved, constant) == summary.terms.linear_form(rest.arguments[1])
}

/// Returns the name of a component of the global invocation id.
fn global_id(summary: &Summary<'_>, id: TermId) -> Option<String> {
    let (atoms, constant) = summary.terms.linear_form(id);
    let &[(a, first), (b, second)] = atoms.as_slice() else { return None };
    let kind = |atom: TermId| summary.terms.kind_of(atom);
    let (axis, size) = match (kind(a)?, kind(b)?) {
        (FunctionKind::GroupId(axis), FunctionKind::LocalId(other)) if axis == other && second == 1 => {
            (*axis, first)
        }
        (FunctionKind::LocalId(other), FunctionKind::GroupId(axis)) if axis == other && first == 1 => {
            (*axis, second)
        }
        _ => return None,
    };
    let is_global = constant == 0 && summary.terms.constant_of(summary.local_size[axis]) == Some(size);
    is_global.then(|| format!("global.{}", ["x", "y", "z"][axis.min(2)]))
}
