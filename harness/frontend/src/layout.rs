//! Where the parts of a type lie, and constants under specialization.

use std::collections::HashMap;
use std::rc::Rc;

use rspirv::spirv::{BuiltIn, Op};
use rustc_hash::FxHashMap;

use crate::annotations::Initial;
use crate::error::{Problem, malformed, unsupported};
use crate::module::{Constant, Module, Type};
use crate::value::{Origin, Value};
use arithmetic::{fold, mask};

/// Parts of a value at most.
pub(crate) const MAX_PARTS: usize = 1 << 14;
/// Types in types, and constants of constants, at most.
const MAX_DEPTH: u32 = 80;

/// A module whose specialization constants are known.
pub(crate) struct Specialized<'m> {
    pub module: &'m Module,
    constants: FxHashMap<u32, Value>,
    sizes: std::cell::RefCell<FxHashMap<u32, u64>>,
}

impl<'m> Specialized<'m> {
    /// Computes all constants; `by_id` are values for `SpecId`, `by_result` for ids, and `workgroup` is the local size.
    pub fn new(
        module: &'m Module,
        by_id: &HashMap<u32, u64>,
        by_result: &HashMap<u32, Initial>,
        workgroup: Option<[u32; 3]>,
    ) -> Result<Specialized<'m>, Problem> {
        let mut all =
            Specialized { module, constants: FxHashMap::default(), sizes: std::cell::RefCell::default() };
        let mut ids: Vec<u32> = module.constants.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            all.compute(id, by_id, by_result, workgroup, 0)?;
        }
        Ok(all)
    }

    fn compute(
        &mut self,
        id: u32,
        by_id: &HashMap<u32, u64>,
        by_result: &HashMap<u32, Initial>,
        workgroup: Option<[u32; 3]>,
        depth: u32,
    ) -> Result<Value, Problem> {
        if let Some(value) = self.constants.get(&id) {
            return Ok(value.clone());
        }
        if depth > MAX_DEPTH {
            return Err(malformed("constants of constants too deep"));
        }
        let Some((ty, constant)) = self.module.constants.get(&id) else {
            return Err(malformed(format!("{} is no constant", self.module.name(id))));
        };
        let decorations = self.module.decorations(id);
        let given = decorations.specialization.and_then(|number| by_id.get(&number));
        let mut inner = |id: &u32| self.compute(*id, by_id, by_result, workgroup, depth + 1);
        let value = match (constant, by_result.get(&id), given, workgroup) {
            (_, _, _, Some(size)) if decorations.built_in == Some(BuiltIn::WorkgroupSize) => {
                Value::Composite(Rc::new(size.iter().map(|n| Value::Known(u64::from(*n))).collect()))
            }
            (Constant::Scalar(_), Some(Initial::Number(number)), _, _) => {
                Value::Known(*number as u64 & mask(self.bits(*ty)?))
            }
            (Constant::Scalar(_), _, Some(number), _) => Value::Known(*number & mask(self.bits(*ty)?)),
            (Constant::Scalar(number), ..) => Value::Known(*number),
            (Constant::Composite(parts), Some(Initial::Parts(given)), _, _) if parts.len() == given.len() => {
                let parts = given.iter().map(|part| match part {
                    Initial::Number(number) => Ok(Value::Known(*number as u64 & mask(32))),
                    Initial::Parts(_) => Err(unsupported("constants of composites in annotations")),
                });
                Value::Composite(Rc::new(parts.collect::<Result<_, _>>()?))
            }
            (Constant::Composite(parts), ..) => {
                Value::Composite(Rc::new(parts.iter().map(inner).collect::<Result<_, _>>()?))
            }
            (Constant::Null, ..) => Value::Null,
            (Constant::Undefined, ..) => Value::Undefined(Origin::Instruction(id, u16::MAX)),
            (Constant::Operation(op, operands), ..) => {
                // Literals stand behind.
                let ids = match op {
                    Op::CompositeExtract => 1,
                    Op::CompositeInsert | Op::VectorShuffle => 2,
                    _ => operands.len(),
                };
                let ids = operands.get(..ids).ok_or_else(|| malformed("no operand"))?;
                let arguments: Vec<Value> = ids.iter().map(&mut inner).collect::<Result<_, _>>()?;
                self.operation(*op, *ty, operands, &arguments)?
            }
        };
        self.constants.insert(id, value.clone());
        Ok(value)
    }

    fn operation(&self, op: Op, ty: u32, operands: &[u32], arguments: &[Value]) -> Result<Value, Problem> {
        let refuse = || unsupported(format!("specialization by Op{op:?}"));
        let whole = matches!(op, Op::CompositeExtract | Op::CompositeInsert | Op::VectorShuffle);
        // Of vectors part by part; the condition of a select may be one for all.
        if let (Some(Type::Vector { element, count }), false) = (self.module.types.get(&ty), whole) {
            let vector = |id: &u32| {
                let ty = self.module.constants.get(id).and_then(|(ty, _)| self.module.types.get(ty));
                matches!(ty, Some(Type::Vector { .. }))
            };
            let component = |index: u32| {
                let each = operands.iter().zip(arguments).map(|(id, value)| match vector(id) {
                    true => part(value, index as usize).ok_or_else(refuse),
                    false => Ok(value.clone()),
                });
                self.operation(op, *element, operands, &each.collect::<Result<Vec<_>, _>>()?)
            };
            return Ok(Value::Composite(Rc::new((0..*count).map(component).collect::<Result<_, _>>()?)));
        }
        match op {
            Op::CompositeExtract => {
                let mut value = arguments[0].clone();
                for index in &operands[1..] {
                    value = part(&value, *index as usize).ok_or_else(refuse)?;
                }
                Ok(value)
            }
            Op::CompositeInsert => {
                self.with_part(&arguments[1], ty, &operands[2..], &arguments[0]).ok_or_else(refuse)
            }
            Op::VectorShuffle => {
                let both = operands.iter().zip(arguments).map(|(id, value)| {
                    let (ty, _) = self.module.constants.get(id)?;
                    self.parts(value, *ty)
                });
                let all = both.collect::<Option<Vec<_>>>().ok_or_else(refuse)?.concat();
                let chosen = operands[2..].iter().map(|index| all.get(*index as usize).cloned());
                chosen
                    .collect::<Option<Vec<_>>>()
                    .map(|all| Value::Composite(Rc::new(all)))
                    .ok_or_else(refuse)
            }
            Op::Select => match arguments {
                [Value::Known(condition), yes, no] => Ok(if *condition != 0 { yes } else { no }.clone()),
                _ => Err(refuse()),
            },
            _ => {
                let numbers: Vec<u64> = arguments
                    .iter()
                    .map(|argument| known(argument).ok_or_else(refuse))
                    .collect::<Result<_, _>>()?;
                let of = operands.first().and_then(|id| self.module.constants.get(id)).map(|(ty, _)| *ty);
                let from = self.bits(of.unwrap_or(ty))?;
                let result = fold(op, &numbers, from, self.bits(ty)?);
                Ok(Value::Known(result.ok_or_else(refuse)?))
            }
        }
    }

    /// The parts of a value of a type; `None` where that has none.
    fn parts(&self, value: &Value, ty: u32) -> Option<Vec<Value>> {
        (0..self.count(ty).ok()?).map(|index| part(value, index)).collect()
    }

    /// A value with another part at a path.
    fn with_part(&self, value: &Value, ty: u32, path: &[u32], new: &Value) -> Option<Value> {
        let Some((index, path)) = path.split_first() else { return Some(new.clone()) };
        let mut parts = self.parts(value, ty)?;
        let inner = self.part_of(ty, u64::from(*index)).ok()?.ty;
        let here = parts.get_mut(*index as usize)?;
        *here = self.with_part(here, inner, path, new)?;
        Some(Value::Composite(Rc::new(parts)))
    }

    /// A constant.
    pub fn constant(&self, id: u32) -> Option<&Value> {
        self.constants.get(&id)
    }

    /// A constant that is a number.
    pub fn number(&self, id: u32) -> Option<u64> {
        self.constants.get(&id).and_then(known)
    }

    /// Bits of a scalar; of a vector those of its elements. Pointers have 64.
    pub fn bits(&self, ty: u32) -> Result<u32, Problem> {
        match self.module.ty(ty)? {
            Type::Bool => Ok(1),
            Type::Integer { bits, .. } | Type::Float { bits } => Ok(*bits),
            Type::Vector { element, .. } => self.bits(*element),
            Type::Pointer { .. } => Ok(64),
            _ => Err(malformed("a number expected")),
        }
    }

    /// Elements of an array.
    pub fn length(&self, length: u32) -> Result<u64, Problem> {
        self.number(length).ok_or_else(|| malformed("an array whose length is no number"))
    }

    /// Bytes of a type; 0 for arrays of no fixed length.
    pub fn size(&self, ty: u32) -> Result<u64, Problem> {
        self.size_within(ty, 0)
    }

    fn size_within(&self, ty: u32, depth: u32) -> Result<u64, Problem> {
        if let Some(size) = self.sizes.borrow().get(&ty) {
            return Ok(*size);
        }
        if depth > MAX_DEPTH {
            return Err(malformed("types too deep"));
        }
        let large = || unsupported("a type of more bytes than memory has");
        let size = match self.module.ty(ty)? {
            Type::Bool => 4,
            Type::Integer { bits, .. } | Type::Float { bits } => u64::from(bits.div_ceil(8)),
            Type::Vector { element, count } => self.size_within(*element, depth + 1)? * u64::from(*count),
            Type::Matrix { column, count } => {
                let column = self.size_within(*column, depth + 1)?;
                column.checked_mul(u64::from(*count)).filter(|size| *size < 1 << 40).ok_or_else(large)?
            }
            Type::Array { element, length } => {
                let element = self.size_within(*element, depth + 1)?;
                let stride = self.module.decorations(ty).stride.unwrap_or(element);
                stride.checked_mul(self.length(*length)?).filter(|size| *size < 1 << 40).ok_or_else(large)?
            }
            Type::RuntimeArray { .. } | Type::Handle(_) | Type::Void | Type::Function { .. } => 0,
            Type::Struct { members } => {
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
            Type::Pointer { .. } => 8,
        };
        self.sizes.borrow_mut().insert(ty, size);
        Ok(size)
    }

    /// Bytes of a member that is a matrix whose columns or rows lie apart.
    fn matrix_size(&self, ty: u32, member: usize, of: u32) -> Result<Option<u64>, Problem> {
        let decorations = self.module.member_decorations.get(&(ty, member as u32));
        let (Type::Matrix { column, count }, Some(decorations)) = (self.module.ty(of)?, decorations) else {
            return Ok(None);
        };
        let (Some(stride), Type::Vector { element, count: rows }) =
            (decorations.matrix_stride, self.module.ty(*column)?)
        else {
            return Ok(None);
        };
        let (lines, in_line) = if decorations.row_major { (rows, count) } else { (count, rows) };
        let last = u64::from(*in_line) * self.size(*element)?;
        let before = stride.checked_mul(u64::from(lines.saturating_sub(1)));
        let size = before.and_then(|before| before.checked_add(last));
        size.map(Some).ok_or_else(|| unsupported("a type of more bytes than memory has"))
    }

    fn declared_offset(&self, ty: u32, member: usize) -> Option<u64> {
        self.module.member_decorations.get(&(ty, member as u32)).and_then(|decorations| decorations.offset)
    }

    /// Where a part of a type lies and what its type is; of arrays also the bytes from one element to the next and how many
    /// there are, where that is fixed.
    pub fn part_of(&self, ty: u32, index: u64) -> Result<Part, Problem> {
        let outside = || malformed(format!("no part {index} of {}", self.module.name(ty)));
        match self.module.ty(ty)? {
            Type::Vector { element, count } => {
                let stride = self.size(*element)?;
                let offset = stride.checked_mul(index).ok_or_else(outside)?;
                Ok(Part { offset, ty: *element, stride: Some(stride), length: Some(u64::from(*count)) })
            }
            Type::Matrix { column, count } => {
                let stride = self.size(*column)?;
                let offset = stride.checked_mul(index).ok_or_else(outside)?;
                Ok(Part { offset, ty: *column, stride: Some(stride), length: Some(u64::from(*count)) })
            }
            Type::Array { element, length } => {
                let stride = self.stride(ty, *element)?;
                let offset = stride.checked_mul(index).ok_or_else(outside)?;
                Ok(Part { offset, ty: *element, stride: Some(stride), length: Some(self.length(*length)?) })
            }
            Type::RuntimeArray { element } => {
                let stride = self.stride(ty, *element)?;
                let offset = stride.checked_mul(index).ok_or_else(outside)?;
                Ok(Part { offset, ty: *element, stride: Some(stride), length: None })
            }
            Type::Struct { members } => {
                let at = usize::try_from(index).map_err(|_| outside())?;
                let member = *members.get(at).ok_or_else(outside)?;
                let mut next = 0_u64;
                for (before, earlier) in members[..at].iter().enumerate() {
                    let offset = self.declared_offset(ty, before).unwrap_or(next);
                    next = (offset + self.size(*earlier)?).next_multiple_of(4);
                }
                let offset = self.declared_offset(ty, at).unwrap_or(next);
                Ok(Part { offset, ty: member, stride: None, length: None })
            }
            _ => Err(malformed(format!("{} has no parts", self.module.name(ty)))),
        }
    }

    /// The same, where it is no matrix that lies in rows, or has gaps between its columns.
    pub fn part_without_gaps(&self, ty: u32, index: u64) -> Result<Part, Problem> {
        let part = self.part_of(ty, index)?;
        let decorations = self.module.member_decorations.get(&(ty, index as u32));
        let Some((decorations, stride)) = decorations.and_then(|all| Some((all, all.matrix_stride?))) else {
            return Ok(part);
        };
        let mut inner = part.ty;
        while let Type::Array { element, .. } | Type::RuntimeArray { element } = self.module.ty(inner)? {
            inner = *element;
        }
        match self.module.ty(inner)? {
            Type::Matrix { column, .. } if decorations.row_major || stride != self.size(*column)? => {
                Err(unsupported("a matrix that lies in rows, or with gaps between its columns"))
            }
            _ => Ok(part),
        }
    }

    fn stride(&self, array: u32, element: u32) -> Result<u64, Problem> {
        match self.module.decorations(array).stride {
            Some(stride) => Ok(stride),
            None => self.size(element),
        }
    }

    /// How many parts a type has that is loaded and stored; an error for arrays without a fixed length.
    pub fn count(&self, ty: u32) -> Result<usize, Problem> {
        let count = match self.module.ty(ty)? {
            Type::Vector { count, .. } | Type::Matrix { count, .. } => u64::from(*count),
            Type::Array { length, .. } => self.length(*length)?,
            Type::Struct { members } => members.len() as u64,
            Type::RuntimeArray { .. } => return Err(malformed("a value of an array without a length")),
            _ => 0,
        };
        usize::try_from(count)
            .ok()
            .filter(|count| *count <= MAX_PARTS)
            .ok_or(Problem::Budget { what: "parts of a value", bound: MAX_PARTS })
    }

    /// Whether a type has no parts.
    pub fn is_scalar(&self, ty: u32) -> Result<bool, Problem> {
        Ok(matches!(
            self.module.ty(ty)?,
            Type::Bool | Type::Integer { .. } | Type::Float { .. } | Type::Pointer { .. } | Type::Handle(_)
        ))
    }

    /// The scalar of a shaped value that lies at an offset of a type; `None` where nothing is said of it.
    pub fn initial_at(&self, initial: &Initial, ty: u32, offset: u64) -> Result<Option<Value>, Problem> {
        let (mut initial, mut ty, mut offset) = (initial, ty, offset);
        for _ in 0..MAX_DEPTH {
            match initial {
                Initial::Number(number) if self.is_scalar(ty)? => {
                    return Ok((offset == 0).then_some(Value::Known(*number as u64 & mask(self.bits(ty)?))));
                }
                Initial::Number(_) => return Ok(None),
                Initial::Parts(parts) => {
                    if self.is_scalar(ty)? {
                        return Ok(None);
                    }
                    let Some((index, part)) = self.part_at(ty, offset, parts.len() as u64)? else {
                        return Ok(None);
                    };
                    let Some(inner) = parts.get(index as usize) else { return Ok(None) };
                    (initial, ty, offset) = (inner, part.ty, offset - part.offset);
                }
            }
        }
        Ok(None)
    }

    /// The scalars of a shaped value: offset, bytes and number of each that something is said of.
    pub fn scalars(&self, initial: &Initial, ty: u32) -> Result<Vec<(u64, u32, u64)>, Problem> {
        let mut found = Vec::new();
        let mut open = vec![(initial, ty, 0_u64)];
        while let Some((initial, ty, offset)) = open.pop() {
            match initial {
                Initial::Number(number) if self.is_scalar(ty)? => {
                    let bytes = u32::try_from(self.size(ty)?).unwrap_or(0);
                    found.push((offset, bytes, *number as u64 & mask(self.bits(ty)?)));
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

    /// The part of a type that an offset lies in, among the first `count`.
    pub fn part_at(&self, ty: u32, offset: u64, count: u64) -> Result<Option<(u64, Part)>, Problem> {
        if let Type::Struct { members } = self.module.ty(ty)? {
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

    /// The scalar of a value that lies at an offset of its type.
    pub fn scalar_at(&self, value: &Value, ty: u32, offset: u64) -> Result<Value, Problem> {
        let (mut value, mut ty, mut offset) = (value.clone(), ty, offset);
        for _ in 0..MAX_DEPTH {
            match value {
                Value::Composite(ref parts) => {
                    let Some((index, place)) = self.part_at(ty, offset, parts.len() as u64)? else { break };
                    let Some(inner) = parts.get(index as usize).cloned() else { break };
                    (value, ty, offset) = (inner, place.ty, offset - place.offset);
                }
                Value::Null => return Ok(Value::Known(0)),
                scalar => return Ok(scalar),
            }
        }
        Err(malformed("an initializer that has not the shape of its type"))
    }
}

/// A part of a type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub offset: u64,
    pub ty: u32,
    pub stride: Option<u64>,
    pub length: Option<u64>,
}

/// A part of a value.
pub(crate) fn part(value: &Value, index: usize) -> Option<Value> {
    match value {
        Value::Composite(parts) => parts.get(index).cloned(),
        Value::Null => Some(Value::Null),
        Value::Opaque => Some(Value::Opaque),
        Value::Undefined(origin) => Some(Value::Undefined(*origin)),
        _ => None,
    }
}

/// The number that a value is.
pub(crate) fn known(value: &Value) -> Option<u64> {
    match value {
        Value::Known(number) => Some(*number),
        Value::Null => Some(0),
        _ => None,
    }
}
