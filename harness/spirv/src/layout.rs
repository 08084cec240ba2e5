//! Memory layout of types, and constants under specialization.

use std::collections::HashMap;
use std::rc::Rc;

use arithmetic::{Instruction, NumberKind, mask};
use rspirv::spirv::{BuiltIn, Op};
use rustc_hash::FxHashMap;

use crate::annotations::Initial;
use crate::error::{SpirvProblem, malformed, unsupported};
use crate::module::{SpirvConstant, SpirvModule, SpirvType};

/// Upper bound on the parts of a value.
pub const MAX_PARTS: usize = 1 << 14;
/// Upper bound on the nesting of types and constants.
const MAX_DEPTH: u32 = 80;

#[derive(Clone, Debug, PartialEq)]
pub enum ConstantValue {
    /// The bits of a number, zero-extended; a boolean is 0 or 1.
    Number(u64),
    /// Zero of any type.
    Null,
    /// An unspecified value, with the id of its `OpUndef`.
    Undefined(u32),
    /// The parts of a composite.
    Composite(Rc<Vec<ConstantValue>>),
}

impl ConstantValue {
    /// Returns the number of a scalar.
    pub fn as_number(&self) -> Option<u64> {
        match self {
            ConstantValue::Number(number) => Some(*number),
            ConstantValue::Null => Some(0),
            ConstantValue::Undefined(_) | ConstantValue::Composite(_) => None,
        }
    }

    pub fn part(&self, index: usize) -> Option<ConstantValue> {
        match self {
            ConstantValue::Composite(parts) => parts.get(index).cloned(),
            ConstantValue::Null | ConstantValue::Undefined(_) => Some(self.clone()),
            ConstantValue::Number(_) => None,
        }
    }
}

/// A module with known specialization constants.
pub struct Specialized<'m> {
    pub module: &'m SpirvModule,
    constants: FxHashMap<u32, ConstantValue>,
    sizes: std::cell::RefCell<FxHashMap<u32, u64>>,
}

impl<'m> Specialized<'m> {
    /// Computes all constants. `by_id` gives values by `SpecId`, `by_result` by id; `workgroup` is the local
    /// size.
    pub fn new(
        module: &'m SpirvModule,
        by_id: &HashMap<u32, u64>,
        by_result: &HashMap<u32, Initial>,
        workgroup: Option<[u32; 3]>,
    ) -> Result<Specialized<'m>, SpirvProblem> {
        let mut all =
            Specialized { module, constants: FxHashMap::default(), sizes: std::cell::RefCell::default() };
        let mut ids: Vec<u32> = module.constants.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            all.compute_constants(id, by_id, by_result, workgroup, 0)?;
        }
        Ok(all)
    }

    fn compute_constants(
        &mut self,
        id: u32,
        by_id: &HashMap<u32, u64>,
        by_result: &HashMap<u32, Initial>,
        workgroup: Option<[u32; 3]>,
        depth: u32,
    ) -> Result<ConstantValue, SpirvProblem> {
        if let Some(value) = self.constants.get(&id) {
            return Ok(value.clone());
        }
        if depth > MAX_DEPTH {
            return Err(malformed("constants nested too deep"));
        }
        let Some((ty, constant)) = self.module.constants.get(&id) else {
            return Err(malformed(format!("{} is not a constant", self.module.display_name(id))));
        };
        let decorations = self.module.decorations_of(id);
        let given = decorations.specialization.and_then(|number| by_id.get(&number));
        let mut inner = |id: &u32| self.compute_constants(*id, by_id, by_result, workgroup, depth + 1);
        let value = match (constant, by_result.get(&id), given, workgroup) {
            (_, _, _, Some(size)) if decorations.built_in == Some(BuiltIn::WorkgroupSize) => {
                ConstantValue::Composite(Rc::new(
                    size.iter().map(|n| ConstantValue::Number(u64::from(*n))).collect(),
                ))
            }
            (SpirvConstant::Scalar(_), Some(Initial::Number(number)), _, _) => {
                ConstantValue::Number(*number as u64 & mask(self.scalar_bits(*ty)?))
            }
            (SpirvConstant::Scalar(_), _, Some(number), _) => {
                ConstantValue::Number(*number & mask(self.scalar_bits(*ty)?))
            }
            (SpirvConstant::Scalar(number), ..) => ConstantValue::Number(*number),
            (SpirvConstant::Composite(parts), Some(Initial::Parts(given)), _, _)
                if parts.len() == given.len() =>
            {
                let parts = given.iter().map(|part| match part {
                    Initial::Number(number) => Ok(ConstantValue::Number(*number as u64 & mask(32))),
                    Initial::Parts(_) => Err(unsupported("constants of composites in annotations")),
                });
                ConstantValue::Composite(Rc::new(parts.collect::<Result<_, _>>()?))
            }
            (SpirvConstant::Composite(parts), ..) => {
                ConstantValue::Composite(Rc::new(parts.iter().map(inner).collect::<Result<_, _>>()?))
            }
            (SpirvConstant::Null, ..) => ConstantValue::Null,
            (SpirvConstant::Undefined, ..) => ConstantValue::Undefined(id),
            (SpirvConstant::Operation(op, operands), ..) => {
                // Literals follow the ids.
                let ids = match op {
                    Op::CompositeExtract => 1,
                    Op::CompositeInsert | Op::VectorShuffle => 2,
                    _ => operands.len(),
                };
                let ids = operands.get(..ids).ok_or_else(|| malformed("no operand"))?;
                let arguments: Vec<ConstantValue> = ids.iter().map(&mut inner).collect::<Result<_, _>>()?;
                self.fold_operation(*op, *ty, operands, &arguments)?
            }
        };
        self.constants.insert(id, value.clone());
        Ok(value)
    }

    fn fold_operation(
        &self,
        op: Op,
        ty: u32,
        operands: &[u32],
        arguments: &[ConstantValue],
    ) -> Result<ConstantValue, SpirvProblem> {
        let refuse = || unsupported(format!("specialization by Op{op:?}"));
        let needs_composite = matches!(op, Op::CompositeExtract | Op::CompositeInsert | Op::VectorShuffle);
        // Vectors are computed by component; a select may have one condition for all.
        if let (Some(SpirvType::Vector { element, count }), false) =
            (self.module.types.get(&ty), needs_composite)
        {
            let vector = |id: &u32| {
                let ty = self.module.constants.get(id).and_then(|(ty, _)| self.module.types.get(ty));
                matches!(ty, Some(SpirvType::Vector { .. }))
            };
            let component = |index: u32| {
                let componentwise = operands.iter().zip(arguments).map(|(id, value)| match vector(id) {
                    true => value.part(index as usize).ok_or_else(refuse),
                    false => Ok(value.clone()),
                });
                self.fold_operation(op, *element, operands, &componentwise.collect::<Result<Vec<_>, _>>()?)
            };
            return Ok(ConstantValue::Composite(Rc::new(
                (0..*count).map(component).collect::<Result<_, _>>()?,
            )));
        }
        match op {
            Op::CompositeExtract => {
                let mut value = arguments[0].clone();
                for index in &operands[1..] {
                    value = value.part(*index as usize).ok_or_else(refuse)?;
                }
                Ok(value)
            }
            Op::CompositeInsert => {
                self.with_part(&arguments[1], ty, &operands[2..], &arguments[0]).ok_or_else(refuse)
            }
            Op::VectorShuffle => {
                let both = operands.iter().zip(arguments).map(|(id, value)| {
                    let (ty, _) = self.module.constants.get(id)?;
                    self.value_parts(value, *ty)
                });
                let all = both.collect::<Option<Vec<_>>>().ok_or_else(refuse)?.concat();
                let chosen = operands[2..].iter().map(|index| all.get(*index as usize).cloned());
                chosen
                    .collect::<Option<Vec<_>>>()
                    .map(|all| ConstantValue::Composite(Rc::new(all)))
                    .ok_or_else(refuse)
            }
            Op::Select => match arguments {
                [ConstantValue::Number(condition), yes, no] => {
                    Ok(if *condition != 0 { yes } else { no }.clone())
                }
                _ => Err(refuse()),
            },
            _ => {
                let numbers: Vec<u64> = arguments
                    .iter()
                    .map(|argument| argument.as_number().ok_or_else(refuse))
                    .collect::<Result<_, _>>()?;
                let of = operands.first().and_then(|id| self.module.constants.get(id)).map(|(ty, _)| *ty);
                let from = self.scalar_bits(of.unwrap_or(ty))?;
                let kind = match self.module.types.get(&of.unwrap_or(ty)) {
                    Some(SpirvType::Float { .. }) => NumberKind::Float,
                    _ => NumberKind::Integer,
                };
                let result =
                    Instruction::Core(op).compute_component(&numbers, kind, from, self.scalar_bits(ty)?);
                Ok(ConstantValue::Number(result.ok_or_else(refuse)?))
            }
        }
    }

    /// Returns the parts of a value; `None` if it has none.
    fn value_parts(&self, value: &ConstantValue, ty: u32) -> Option<Vec<ConstantValue>> {
        (0..self.part_count(ty).ok()?).map(|index| value.part(index)).collect()
    }

    /// Replaces the part at a path.
    fn with_part(
        &self,
        value: &ConstantValue,
        ty: u32,
        path: &[u32],
        new: &ConstantValue,
    ) -> Option<ConstantValue> {
        let Some((index, path)) = path.split_first() else { return Some(new.clone()) };
        let mut parts = self.value_parts(value, ty)?;
        let inner = self.part_of(ty, u64::from(*index)).ok()?.ty;
        let here = parts.get_mut(*index as usize)?;
        *here = self.with_part(here, inner, path, new)?;
        Some(ConstantValue::Composite(Rc::new(parts)))
    }

    /// Returns a numeric constant.
    pub fn constant_number(&self, id: u32) -> Option<u64> {
        self.constants.get(&id).and_then(ConstantValue::as_number)
    }

    /// Returns the bits of a scalar or of a vector's components; pointers have 64.
    pub fn scalar_bits(&self, ty: u32) -> Result<u32, SpirvProblem> {
        match self.module.type_of_id(ty)? {
            SpirvType::Bool => Ok(1),
            SpirvType::Integer { bits, .. } | SpirvType::Float { bits } => Ok(*bits),
            SpirvType::Vector { element, .. } => self.scalar_bits(*element),
            SpirvType::Pointer { .. } => Ok(64),
            _ => Err(malformed("a number expected")),
        }
    }

    /// Returns the constants by id.
    pub fn constants(&self) -> &FxHashMap<u32, ConstantValue> {
        &self.constants
    }

    /// Returns the local size of an entry point; one invocation if the module declares none.
    pub fn local_size(&self, function: u32) -> Result<[u32; 3], SpirvProblem> {
        // A constant with the `WorkgroupSize` decoration overrides the execution mode.
        let decorated = self.module.decorations.iter().find(|(id, decorations)| {
            decorations.built_in == Some(BuiltIn::WorkgroupSize) && self.constants.contains_key(id)
        });
        let sizes: Vec<u64> = match (decorated, self.module.declared_local_size(function)) {
            (Some((id, _)), _) => {
                (0..3).filter_map(|axis| self.constants.get(id)?.part(axis)?.as_number()).collect()
            }
            (None, Some((numbers, false))) => numbers.iter().map(|number| u64::from(*number)).collect(),
            (None, Some((ids, true))) => ids.iter().filter_map(|id| self.constant_number(*id)).collect(),
            (None, None) => vec![1, 1, 1],
        };
        let sizes: Vec<u32> = sizes.iter().filter_map(|size| u32::try_from(*size).ok()).collect();
        <[u32; 3]>::try_from(sizes).map_err(|_| malformed("a local size that is not three numbers"))
    }

    pub fn array_length(&self, length: u32) -> Result<u64, SpirvProblem> {
        self.constant_number(length).ok_or_else(|| malformed("an array whose length is not a number"))
    }

    /// Returns the size of a type in bytes; 0 for runtime arrays.
    pub fn size_of(&self, ty: u32) -> Result<u64, SpirvProblem> {
        self.size_within(ty, 0)
    }

    fn size_within(&self, ty: u32, depth: u32) -> Result<u64, SpirvProblem> {
        if let Some(size) = self.sizes.borrow().get(&ty) {
            return Ok(*size);
        }
        if depth > MAX_DEPTH {
            return Err(malformed("types nested too deep"));
        }
        let large = || unsupported("a type larger than memory");
        let size = match self.module.type_of_id(ty)? {
            SpirvType::Bool => 4,
            SpirvType::Integer { bits, .. } | SpirvType::Float { bits } => u64::from(bits.div_ceil(8)),
            SpirvType::Vector { element, count } => {
                self.size_within(*element, depth + 1)? * u64::from(*count)
            }
            SpirvType::Matrix { column, count } => {
                let column = self.size_within(*column, depth + 1)?;
                column.checked_mul(u64::from(*count)).filter(|size| *size < 1 << 40).ok_or_else(large)?
            }
            SpirvType::Array { element, length } => {
                let element = self.size_within(*element, depth + 1)?;
                let stride = self.module.decorations_of(ty).stride.unwrap_or(element);
                stride
                    .checked_mul(self.array_length(*length)?)
                    .filter(|size| *size < 1 << 40)
                    .ok_or_else(large)?
            }
            SpirvType::RuntimeArray { .. }
            | SpirvType::Handle(_)
            | SpirvType::Void
            | SpirvType::Function { .. } => 0,
            SpirvType::Struct { members } => {
                let mut end = 0_u64;
                let mut next = 0_u64;
                for (index, member) in members.iter().enumerate() {
                    let size = match self.matrix_size(ty, index, *member)? {
                        Some(size) => size,
                        None => self.size_within(*member, depth + 1)?,
                    };
                    let offset = self.declared_offset(ty, index).unwrap_or(next);
                    next = offset.checked_add(size).filter(|size| *size < 1 << 40).ok_or_else(large)?;
                    next = next.next_multiple_of(4);
                    end = end.max(offset + size);
                }
                end
            }
            SpirvType::Pointer { .. } => 8,
        };
        self.sizes.borrow_mut().insert(ty, size);
        Ok(size)
    }

    /// Returns the size of a matrix member with a stride.
    fn matrix_size(&self, ty: u32, member: usize, of: u32) -> Result<Option<u64>, SpirvProblem> {
        let decorations = self.module.member_decorations.get(&(ty, member as u32));
        let (SpirvType::Matrix { column, count }, Some(decorations)) =
            (self.module.type_of_id(of)?, decorations)
        else {
            return Ok(None);
        };
        let (Some(stride), SpirvType::Vector { element, count: rows }) =
            (decorations.matrix_stride, self.module.type_of_id(*column)?)
        else {
            return Ok(None);
        };
        let (lines, in_line) = if decorations.row_major { (rows, count) } else { (count, rows) };
        let last = u64::from(*in_line) * self.size_of(*element)?;
        let before = stride.checked_mul(u64::from(lines.saturating_sub(1)));
        let size = before.and_then(|before| before.checked_add(last));
        size.map(Some).ok_or_else(|| unsupported("a type larger than memory"))
    }

    fn declared_offset(&self, ty: u32, member: usize) -> Option<u64> {
        self.module.member_decorations.get(&(ty, member as u32)).and_then(|decorations| decorations.offset)
    }

    /// Returns offset and type of a part; for arrays also the stride and the length, if fixed.
    pub fn part_of(&self, ty: u32, index: u64) -> Result<TypePart, SpirvProblem> {
        let outside = || malformed(format!("no member {index} of {}", self.module.display_name(ty)));
        match self.module.type_of_id(ty)? {
            SpirvType::Vector { element, count } => {
                let stride = self.size_of(*element)?;
                let offset = stride.checked_mul(index).ok_or_else(outside)?;
                Ok(TypePart { offset, ty: *element, stride: Some(stride), length: Some(u64::from(*count)) })
            }
            SpirvType::Matrix { column, count } => {
                let stride = self.size_of(*column)?;
                let offset = stride.checked_mul(index).ok_or_else(outside)?;
                Ok(TypePart { offset, ty: *column, stride: Some(stride), length: Some(u64::from(*count)) })
            }
            SpirvType::Array { element, length } => {
                let stride = self.array_stride(ty, *element)?;
                let offset = stride.checked_mul(index).ok_or_else(outside)?;
                Ok(TypePart {
                    offset,
                    ty: *element,
                    stride: Some(stride),
                    length: Some(self.array_length(*length)?),
                })
            }
            SpirvType::RuntimeArray { element } => {
                let stride = self.array_stride(ty, *element)?;
                let offset = stride.checked_mul(index).ok_or_else(outside)?;
                Ok(TypePart { offset, ty: *element, stride: Some(stride), length: None })
            }
            SpirvType::Struct { members } => {
                let at = usize::try_from(index).map_err(|_| outside())?;
                let member = *members.get(at).ok_or_else(outside)?;
                let mut next = 0_u64;
                for (before, earlier) in members[..at].iter().enumerate() {
                    let offset = self.declared_offset(ty, before).unwrap_or(next);
                    next = (offset + self.size_of(*earlier)?).next_multiple_of(4);
                }
                let offset = self.declared_offset(ty, at).unwrap_or(next);
                Ok(TypePart { offset, ty: member, stride: None, length: None })
            }
            _ => Err(malformed(format!("{} has no members", self.module.display_name(ty)))),
        }
    }

    /// Does the same, except for row-major matrices and matrices with gaps.
    pub fn dense_part_of(&self, ty: u32, index: u64) -> Result<TypePart, SpirvProblem> {
        let part = self.part_of(ty, index)?;
        let decorations = self.module.member_decorations.get(&(ty, index as u32));
        let Some((decorations, stride)) = decorations.and_then(|all| Some((all, all.matrix_stride?))) else {
            return Ok(part);
        };
        let mut inner = part.ty;
        while let SpirvType::Array { element, .. } | SpirvType::RuntimeArray { element } =
            self.module.type_of_id(inner)?
        {
            inner = *element;
        }
        match self.module.type_of_id(inner)? {
            SpirvType::Matrix { column, .. }
                if decorations.row_major || stride != self.size_of(*column)? =>
            {
                Err(unsupported("a row-major matrix, or one with gaps between its columns"))
            }
            _ => Ok(part),
        }
    }

    fn array_stride(&self, array: u32, element: u32) -> Result<u64, SpirvProblem> {
        match self.module.decorations_of(array).stride {
            Some(stride) => Ok(stride),
            None => self.size_of(element),
        }
    }

    /// Returns the number of parts that a load or store transfers.
    ///
    /// Fails for runtime arrays.
    pub fn part_count(&self, ty: u32) -> Result<usize, SpirvProblem> {
        let count = match self.module.type_of_id(ty)? {
            SpirvType::Vector { count, .. } | SpirvType::Matrix { count, .. } => u64::from(*count),
            SpirvType::Array { length, .. } => self.array_length(*length)?,
            SpirvType::Struct { members } => members.len() as u64,
            SpirvType::RuntimeArray { .. } => return Err(malformed("a value of an array without a length")),
            _ => 0,
        };
        usize::try_from(count)
            .ok()
            .filter(|count| *count <= MAX_PARTS)
            .ok_or(SpirvProblem::Budget { what: "members of a value", bound: MAX_PARTS })
    }

    /// Returns true if a type has no parts.
    pub fn is_scalar(&self, ty: u32) -> Result<bool, SpirvProblem> {
        Ok(matches!(
            self.module.type_of_id(ty)?,
            SpirvType::Bool
                | SpirvType::Integer { .. }
                | SpirvType::Float { .. }
                | SpirvType::Pointer { .. }
                | SpirvType::Handle(_)
        ))
    }

    /// Returns offset, size and number of each scalar of an annotated value.
    pub fn initial_scalars(&self, initial: &Initial, ty: u32) -> Result<Vec<(u64, u32, u64)>, SpirvProblem> {
        let mut found = Vec::new();
        let mut open = vec![(initial, ty, 0_u64)];
        while let Some((initial, ty, offset)) = open.pop() {
            match initial {
                Initial::Number(number) if self.is_scalar(ty)? => {
                    let bytes = u32::try_from(self.size_of(ty)?).unwrap_or(0);
                    found.push((offset, bytes, *number as u64 & mask(self.scalar_bits(ty)?)));
                }
                Initial::Parts(parts) if !self.is_scalar(ty)? => {
                    for (index, part) in parts.iter().enumerate() {
                        let place = self.part_of(ty, index as u64)?;
                        open.push((part, place.ty, offset.saturating_add(place.offset)));
                    }
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// Returns the part among the first `count` that contains an offset.
    pub fn part_at(&self, ty: u32, offset: u64, count: u64) -> Result<Option<(u64, TypePart)>, SpirvProblem> {
        if let SpirvType::Struct { members } = self.module.type_of_id(ty)? {
            for index in (0..members.len() as u64).rev() {
                let part = self.part_of(ty, index)?;
                if part.offset <= offset && index < count {
                    return Ok(Some((index, part)));
                }
            }
            return Ok(None);
        }
        let stride = self.part_of(ty, 0)?.stride.unwrap_or(0);
        if stride == 0 {
            return Ok(None);
        }
        let index = offset / stride;
        if index < count { Ok(Some((index, self.part_of(ty, index)?))) } else { Ok(None) }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct TypePart {
    pub offset: u64,
    pub ty: u32,
    pub stride: Option<u64>,
    pub length: Option<u64>,
}
