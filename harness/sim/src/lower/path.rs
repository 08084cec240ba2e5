//! Access paths: positions of members within a variable, in memory by bytes and in registers by words.

use rspirv::spirv::StorageClass;
use spirv_reader::SpirvType;

use super::{LoweredValue, Lowering};
use crate::instruction::{LoadError, malformed_module};
use crate::program::{Binary, NONE, Op, Register};

/// The matrix stride in bytes, and true for row-major; `None` without an explicit layout.
pub(super) type MatrixLayout = Option<(u32, bool)>;

/// A number inside a value: its register, and its offset and size in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub register: Register,
    pub offset: u32,
    pub bytes: u8,
}

/// An access path from a variable to a member.
#[derive(Clone, Debug, Default)]
struct AccessPath {
    ty: u32,
    matrix_layout: MatrixLayout,
    /// True if a member on the path is coherent.
    coherent: bool,
    bytes: u32,
    words: u32,
    /// Dynamic indices: id, and the element stride in bytes and in words.
    dynamic_indices: Vec<(u32, u32, u32)>,
}

impl Lowering<'_> {
    /// Returns the numbers of a value of a type.
    pub(super) fn value_leaves(&self, ty: u32, first: Register) -> Vec<Leaf> {
        let mut all = Vec::new();
        self.add_leaves(ty, None, first, 0, &mut all);
        all
    }

    /// Returns the numbers of a value of a type, with their memory offsets.
    pub(super) fn leaves_at(&self, ty: u32, strided: MatrixLayout, first: Register) -> Vec<Leaf> {
        let mut all = Vec::new();
        self.add_leaves(ty, strided, first, 0, &mut all);
        all
    }

    fn add_leaves(
        &self,
        ty: u32,
        strided: MatrixLayout,
        register: Register,
        offset: u32,
        all: &mut Vec<Leaf>,
    ) {
        let module = self.module;
        let words = |ty: &u32| module.registers_of(*ty).unwrap_or(1);
        match module.type_of(ty) {
            Some(SpirvType::Vector { element, count }) => {
                let each = strided.map_or_else(|| module.bytes_of(*element), |(stride, _)| stride);
                for number in 0..*count {
                    let register = register + number * words(element);
                    self.add_leaves(*element, None, register, offset.wrapping_add(number * each), all);
                }
            }
            Some(SpirvType::Matrix { column, count }) => {
                for number in 0..*count {
                    let (bytes, inner) = self.column_layout(*column, strided);
                    let register = register + number * words(column);
                    self.add_leaves(*column, inner, register, offset.wrapping_add(number * bytes), all);
                }
            }
            Some(SpirvType::Array { element, length }) => {
                let each = module.stride_of(ty, *element);
                for number in 0..module.array_length(*length).unwrap_or(0) {
                    let register = register + number * words(element);
                    let offset = offset.wrapping_add(number.wrapping_mul(each));
                    self.add_leaves(*element, strided, register, offset, all);
                }
            }
            Some(SpirvType::Struct { members }) => {
                let mut register = register;
                for (member, inner) in (0..).zip(members) {
                    let offset = offset.wrapping_add(module.offset_of(ty, member));
                    let strided = module.matrix_layout(ty, member);
                    self.add_leaves(*inner, strided, register, offset, all);
                    register += words(inner);
                }
            }
            _ => all.push(Leaf { register, offset, bytes: module.bytes_of(ty).clamp(1, 8) as u8 }),
        }
    }

    /// Returns the stride between matrix columns, and the layout within a column.
    fn column_layout(&self, column: u32, strided: MatrixLayout) -> (u32, MatrixLayout) {
        let Some(SpirvType::Vector { element, .. }) = self.module.type_of(column) else {
            return (self.module.bytes_of(column), None);
        };
        match strided {
            Some((_, true)) => (self.module.bytes_of(*element), strided),
            Some((stride, false)) => (stride, None),
            None => (self.module.bytes_of(column), None),
        }
    }

    /// Returns true if a structure contains a coherent member, which makes accesses of all of it coherent.
    pub(super) fn has_coherent_member(&self, ty: u32) -> bool {
        match self.module.type_of(ty) {
            Some(SpirvType::Struct { members }) => (0..).zip(members).any(|(member, inner)| {
                self.module.is_coherent_member(ty, member) || self.has_coherent_member(*inner)
            }),
            Some(SpirvType::Array { element, .. } | SpirvType::RuntimeArray { element }) => {
                self.has_coherent_member(*element)
            }
            _ => false,
        }
    }

    /// Returns the explicit layout of a pointer's target, if that is a matrix or a row of one.
    pub(super) fn matrix_layout_of(&self, pointer: u32) -> MatrixLayout {
        self.strides.get(&pointer).copied()
    }

    /// Returns the pointee type of a pointer.
    pub(super) fn pointee(&self, pointer: u32) -> Result<u32, LoadError> {
        let global = || self.module.source().variable_types.get(&pointer).copied();
        let ty = self.types.get(&pointer).copied().or_else(global);
        match ty.and_then(|ty| self.module.type_of(ty)) {
            Some(SpirvType::Pointer { pointee: to, .. }) => Ok(*to),
            _ => Err(malformed_module(self.current.word, format!("%{pointer} is not a pointer"))),
        }
    }

    /// Returns the type at literal indices, and its offset in words.
    pub(super) fn type_at_path(&self, mut ty: u32, path: &[u32]) -> Result<(u32, u32), LoadError> {
        let mut words = 0;
        for index in path {
            let (inner, before) = self.member_type(ty, *index)?;
            words += before;
            ty = inner;
        }
        Ok((ty, words))
    }

    fn member_type(&self, ty: u32, index: u32) -> Result<(u32, u32), LoadError> {
        let none = || malformed_module(self.current.word, "no such part");
        let words = |ty: u32| self.module.registers_of(ty).unwrap_or(1);
        let part =
            |inner: u32, count: u32| (index < count).then(|| (inner, index * words(inner))).ok_or_else(none);
        match self.module.type_of(ty) {
            Some(SpirvType::Struct { members }) => {
                let inner = members.get(index as usize).copied().ok_or_else(none)?;
                let before = members.iter().take(index as usize).map(|member| words(*member)).sum();
                Ok((inner, before))
            }
            Some(
                SpirvType::Vector { element: inner, count } | SpirvType::Matrix { column: inner, count },
            ) => part(*inner, *count),
            Some(SpirvType::Array { element, length }) => {
                part(*element, self.module.array_length(*length).unwrap_or(0))
            }
            _ => Err(none()),
        }
    }

    fn resolve_path(&self, base: u32, indices: &[u32]) -> Result<AccessPath, LoadError> {
        let module = self.module;
        let mut path = AccessPath { ty: base, ..AccessPath::default() };
        for id in indices.iter().copied() {
            let known = module.constants.get(&id).map(|(_, index)| *index as u32);
            let (inner, bytes) = match module.type_of(path.ty) {
                Some(SpirvType::Struct { members }) => {
                    let member = self.constant_operand(id)?;
                    path.bytes = path.bytes.wrapping_add(module.offset_of(path.ty, member));
                    path.matrix_layout = module.matrix_layout(path.ty, member);
                    path.coherent |= module.is_coherent_member(path.ty, member);
                    let before = members.iter().take(member as usize);
                    path.words += before.map(|ty| module.registers_of(*ty).unwrap_or(0)).sum::<u32>();
                    let inner = members.get(member as usize).copied();
                    path.ty = inner.ok_or_else(|| malformed_module(self.current.word, "no such member"))?;
                    continue;
                }
                Some(SpirvType::Array { element, .. } | SpirvType::RuntimeArray { element }) => {
                    (*element, module.stride_of(path.ty, *element))
                }
                Some(SpirvType::Matrix { column, .. }) => {
                    let (bytes, inner) = self.column_layout(*column, path.matrix_layout);
                    path.matrix_layout = inner;
                    (*column, bytes)
                }
                Some(SpirvType::Vector { element, .. }) => {
                    let bytes =
                        path.matrix_layout.map_or_else(|| module.bytes_of(*element), |(stride, _)| stride);
                    path.matrix_layout = None;
                    (*element, bytes)
                }
                _ => return Err(LoadError::Unsupported("OpAccessChain into this type".into())),
            };
            let words = module.registers_of(inner).unwrap_or(0);
            match known {
                Some(index) => {
                    path.bytes = path.bytes.wrapping_add(index.wrapping_mul(bytes));
                    path.words = path.words.wrapping_add(index.wrapping_mul(words));
                }
                None => path.dynamic_indices.push((id, bytes, words)),
            }
            path.ty = inner;
        }
        Ok(path)
    }

    /// Returns the register of the sum of dynamic indices, each scaled by the selected stride.
    fn emit_index_sum(
        &mut self,
        computed: &[(u32, u32, u32)],
        each: impl Fn(&(u32, u32, u32)) -> u32,
    ) -> Result<Register, LoadError> {
        let mut sum = NONE;
        for index in computed {
            let from = self.awaited_register(index.0)?;
            let by = self.constant_register(each(index));
            let product = self.new_register();
            self.program.ops.push(Op::Binary { op: Binary::Multiply, to: product, left: from, right: by });
            if sum == NONE {
                sum = product;
                continue;
            }
            let to = self.new_register();
            self.program.ops.push(Op::Binary { op: Binary::Add, to, left: sum, right: product });
            sum = to;
        }
        Ok(sum)
    }

    pub(super) fn constant_register(&mut self, word: u32) -> Register {
        if let Some((known, _)) = self.program.constants.iter().find(|(_, value)| *value == word) {
            return *known;
        }
        let register = self.new_register();
        self.program.constants.push((register, word));
        register
    }

    pub(super) fn lower_access_chain(&mut self, base: u32, indices: &[u32]) -> Result<(), LoadError> {
        let result = self.current.result_id()?;
        let base_type = match self.lowered_value(base)? {
            LoweredValue::MemoryVariable { ty, .. } => ty,
            _ => self.pointee(base)?,
        };
        let path = self.resolve_path(base_type, indices)?;
        if path.coherent || self.has_coherent_member(path.ty) {
            self.coherent_pointers.insert(result);
        }
        if let Some(strided) = path.matrix_layout {
            self.strides.insert(result, strided);
        }
        let meaning = match self.lowered_value(base)? {
            LoweredValue::PushConstantBlock => {
                let index = self.emit_index_sum(&path.dynamic_indices, |(_, bytes, _)| *bytes)?;
                LoweredValue::PushConstant { bytes: path.bytes, index }
            }
            LoweredValue::Input(built_in) if path.dynamic_indices.is_empty() => {
                LoweredValue::InputComponent(built_in, path.words as u8)
            }
            LoweredValue::Variable(first) if path.dynamic_indices.is_empty() => {
                LoweredValue::Variable(first + path.words)
            }
            LoweredValue::Variable(first) => {
                let index = self.emit_index_sum(&path.dynamic_indices, |(_, _, words)| *words)?;
                let all = self.module.registers_of(base_type).unwrap_or(0);
                LoweredValue::Element { first, offset: path.words, index, words: all }
            }
            LoweredValue::MemoryVariable { reference, .. } => {
                let number = matches!(
                    self.module.type_of(path.ty),
                    Some(
                        SpirvType::Integer { .. }
                            | SpirvType::Float { .. }
                            | SpirvType::Vector { .. }
                            | SpirvType::Bool
                    )
                );
                let address = match self.lowered_values.get(&result) {
                    Some(LoweredValue::Pointer { address, .. })
                        if path.dynamic_indices.len() < 2 && number =>
                    {
                        *address
                    }
                    _ => NONE,
                };
                let (index, scale) = match path.dynamic_indices[..] {
                    [] => (NONE, 0),
                    [(id, bytes, _)] => {
                        let index = self.awaited_register(id)?;
                        self.indices.push((id, reference));
                        (index, bytes)
                    }
                    _ => (self.emit_index_sum(&path.dynamic_indices, |(_, bytes, _)| *bytes)?, 1),
                };
                let to = if address == NONE { self.new_register() } else { address };
                let leaves = self.leaves_at(path.ty, path.matrix_layout, 0);
                let bytes = leaves.iter().map(|leaf| leaf.offset + u32::from(leaf.bytes)).max().unwrap_or(0);
                self.program.ops.push(Op::Address { to, reference, index, scale, offset: path.bytes, bytes });
                LoweredValue::Pointer { reference, address: to }
            }
            _ => return Err(LoadError::Unsupported("OpAccessChain into this variable".into())),
        };
        self.lowered_values.insert(result, meaning);
        Ok(())
    }

    /// Emits the address of a whole variable in memory.
    pub(super) fn emit_variable_address(&mut self, reference: u16, ty: u32) -> Register {
        let (to, bytes) = (self.new_register(), self.module.bytes_of(ty));
        self.program.ops.push(Op::Address { to, reference, index: NONE, scale: 0, offset: 0, bytes });
        to
    }

    /// Returns true if a pointer needs no address: it leads to registers, inputs or push constants.
    pub(super) fn has_no_address(class: StorageClass) -> bool {
        matches!(
            class,
            StorageClass::Function | StorageClass::Private | StorageClass::PushConstant | StorageClass::Input
        )
    }
}
