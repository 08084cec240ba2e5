//! Memory accesses of a thread: pointers, texels, memory operands and conversions of values.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{
    Access, AccessKind, MemoryPlace, Operand, RegisterId, RmwOperation, ScalarType, Scope, Semantics, Value,
};
use rspirv::dr;
use rspirv::spirv::{self, ImageOperands, MemoryAccess, Op, Word};

use super::{ThreadEmitter, atomic_op};
use crate::memory::{AccessTarget, ElementType, ReferencePath};
use crate::rules::Rule;
use crate::variant::MemoryModel;

impl ThreadEmitter<'_> {
    pub(super) fn resolve_path(
        &self,
        place: &MemoryPlace,
        components: u8,
    ) -> Result<(ReferencePath, AccessTarget), Rule> {
        let MemoryPlace { location, offset, .. } = *place;
        let element = ElementType::from_scalar(place.scalar_type(self.context.test));
        let path = ReferencePath { location, element, offset, components: components.into() };
        let found = self.context.targets.iter().find(|(known, _)| *known == path);
        let (_, target) = found.ok_or(Rule::Internal("an access whose path was not declared"))?;
        Ok((path, *target))
    }

    /// Returns the pointer of an atomic: to memory or to a texel.
    pub(super) fn atomic_pointer(&mut self, path: ReferencePath, target: AccessTarget) -> Word {
        match target {
            AccessTarget::Memory { pointer, .. } => pointer,
            AccessTarget::Texel { variable, coordinates, .. } => {
                let texel = path.element.spirv_type(self.module);
                let ty = self.module.type_pointer(spirv::StorageClass::Image, texel);
                let sample = self.module.constant(0);
                self.module.emit_on_ids(Op::ImageTexelPointer, ty, &[variable, coordinates, sample])
            }
        }
    }

    /// Returns the operands of an atomic up to the semantics.
    fn atomic_operands(
        &mut self,
        path: ReferencePath,
        target: AccessTarget,
        scope: Scope,
        semantics: Semantics,
    ) -> Result<[dr::Operand; 3], Rule> {
        let pointer = dr::Operand::IdRef(self.atomic_pointer(path, target));
        Ok([pointer, self.scope_id_operand(scope)?, self.atomic_semantics(semantics)])
    }

    pub(crate) fn emit_plain_load(
        &mut self,
        path: ReferencePath,
        target: AccessTarget,
        access: &Access,
    ) -> Result<Word, Rule> {
        let ty = path.spirv_type(self.module);
        match target {
            AccessTarget::Memory { pointer, alignment } => {
                let mut operands = vec![dr::Operand::IdRef(pointer)];
                operands.extend(self.memory_operands(
                    access,
                    alignment,
                    MemoryAccess::MAKE_POINTER_VISIBLE,
                )?);
                Ok(self.module.emit_value(Op::Load, ty, operands))
            }
            AccessTarget::Texel { variable, image, coordinates } => {
                let texels = self.module.type_vector(ty, 4);
                let loaded = self.module.emit_on_ids(Op::Load, image, &[variable]);
                let mut operands = vec![dr::Operand::IdRef(loaded), dr::Operand::IdRef(coordinates)];
                operands.extend(self.image_operands(access, ImageOperands::MAKE_TEXEL_VISIBLE)?);
                let read = self.module.emit_value(Op::ImageRead, texels, operands);
                Ok(self.module.extract(ty, read, 0))
            }
        }
    }

    pub(super) fn emit_plain_store(
        &mut self,
        path: ReferencePath,
        target: AccessTarget,
        value: Word,
        access: &Access,
    ) -> Result<(), Rule> {
        match target {
            AccessTarget::Memory { pointer, alignment } => {
                let mut operands = vec![dr::Operand::IdRef(pointer), dr::Operand::IdRef(value)];
                operands.extend(self.memory_operands(
                    access,
                    alignment,
                    MemoryAccess::MAKE_POINTER_AVAILABLE,
                )?);
                self.module.emit_void(Op::Store, operands);
            }
            AccessTarget::Texel { variable, image, coordinates } => {
                let ty = path.element.spirv_type(self.module);
                let texels = self.module.type_vector(ty, 4);
                let texel = self.module.emit_on_ids(Op::CompositeConstruct, texels, &[value; 4]);
                let loaded = self.module.emit_on_ids(Op::Load, image, &[variable]);
                let mut operands = [loaded, coordinates, texel].map(dr::Operand::IdRef).to_vec();
                operands.extend(self.image_operands(access, ImageOperands::MAKE_TEXEL_AVAILABLE)?);
                self.module.emit_void(Op::ImageWrite, operands);
            }
        }
        Ok(())
    }

    /// Emits a load, a store or a read-modify-write.
    pub(super) fn emit_access(&mut self, access: &litmus::MemoryAccess) -> Result<(), Rule> {
        let (path, target) = self.resolve_path(&access.place, access.components())?;
        let scalar = access.place.scalar_type(self.context.test);
        match &access.kind {
            AccessKind::Load(destinations) => {
                let loaded = match access.strength {
                    Access::Atomic { scope, semantics } => {
                        let operands = self.atomic_operands(path, target, scope, semantics)?;
                        let ty = path.element.spirv_type(self.module);
                        self.module.emit_value(Op::AtomicLoad, ty, operands)
                    }
                    plain @ (Access::Private | Access::NonPrivate | Access::Coherent { .. }) => {
                        self.emit_plain_load(path, target, &plain)?
                    }
                };
                for (number, register) in (0..).zip(destinations.iter()) {
                    let mut part = loaded;
                    if access.is_vector() {
                        let ty = path.element.spirv_type(self.module);
                        part = self.module.extract(ty, loaded, number);
                    }
                    self.assign_loaded_value(register, scalar, part)?;
                }
            }
            AccessKind::Store(values) => {
                let parts: Vec<Word> = values
                    .iter()
                    .map(|value| self.operand_as_element(value, path.element))
                    .collect::<Result<_, _>>()?;
                let value = match parts.as_slice() {
                    [part] => *part,
                    parts => {
                        let ty = path.spirv_type(self.module);
                        self.module.emit_on_ids(Op::CompositeConstruct, ty, parts)
                    }
                };
                match access.strength {
                    Access::Atomic { scope, semantics } => {
                        let operands = self.atomic_operands(path, target, scope, semantics)?;
                        let value = dr::Operand::IdRef(value);
                        self.module.emit_void(Op::AtomicStore, operands.into_iter().chain([value]));
                    }
                    plain @ (Access::Private | Access::NonPrivate | Access::Coherent { .. }) => {
                        self.emit_plain_store(path, target, value, &plain)?;
                    }
                }
            }
            AccessKind::Rmw { destination: Some(destination), operation } => {
                let Access::Atomic { scope, semantics } = access.strength else {
                    return Err(Rule::PlainReadModifyWrite);
                };
                let (op, values, unequal) = match operation {
                    RmwOperation::Exchange(value) => (Op::AtomicExchange, vec![*value], None),
                    RmwOperation::Fetch(arithmetic, value) => {
                        (atomic_op(*arithmetic, scalar)?, vec![*value], None)
                    }
                    RmwOperation::CompareExchange { compare, value, unequal } => {
                        (Op::AtomicCompareExchange, vec![*value, *compare], Some(*unequal))
                    }
                };
                let values: Vec<Word> = values
                    .into_iter()
                    .map(|value| self.operand_as_element(value, path.element))
                    .collect::<Result<_, _>>()?;
                let mut operands = self.atomic_operands(path, target, scope, semantics)?.to_vec();
                operands.extend(unequal.map(|unequal| self.atomic_semantics(unequal)));
                operands.extend(values.into_iter().map(dr::Operand::IdRef));
                let ty = path.element.spirv_type(self.module);
                let old = self.module.emit_value(op, ty, operands);
                self.assign_loaded_value(*destination, scalar, old)?;
            }
            AccessKind::Rmw { destination: None, .. } | AccessKind::Await { .. } => return Err(Rule::Hsa),
        }
        Ok(())
    }

    /// Assigns the result of an access to a scalar to a register. Narrow signed numbers are sign-extended.
    ///
    /// A floating-point number is converted to an integer. One that is not an integer is assigned as its
    /// bits, which no outcome allows, so the verdict shows it.
    pub(super) fn assign_loaded_value(
        &mut self,
        register: RegisterId,
        scalar: ScalarType,
        value: Word,
    ) -> Result<(), Rule> {
        let width = self.register_width(register);
        let element = ElementType::from_scalar(scalar);
        let (mut value, from) = (value, 8 * element.bytes());
        if element.is_float() {
            let (integer, float) = (self.module.type_int(from), element.spirv_type(self.module));
            let bits = self.module.emit_on_ids(Op::Bitcast, integer, &[value]);
            let number = self.module.emit_on_ids(Op::ConvertFToS, integer, &[value]);
            let back = self.module.emit_on_ids(Op::ConvertSToF, float, &[number]);
            let back = self.module.emit_on_ids(Op::Bitcast, integer, &[back]);
            let same = self.module.emit_bool(Op::IEqual, &[bits, back]);
            value = self.module.emit_on_ids(Op::Select, integer, &[same, number, bits]);
        }
        if from != width {
            let ty = self.module.type_int(width);
            let sign_extends = scalar.is_signed() && from < width;
            let convert = if sign_extends { Op::SConvert } else { Op::UConvert };
            value = self.module.emit_on_ids(convert, ty, &[value]);
        }
        self.assign_register(register, value)
    }

    /// Returns the value of an operand as an element.
    pub(super) fn operand_as_element(
        &mut self,
        operand: Operand,
        element: ElementType,
    ) -> Result<Word, Rule> {
        let ty = element.spirv_type(self.module);
        let bits = 8 * element.bytes();
        Ok(match operand {
            Operand::Constant(constant) => {
                let word = element.value_bits(Value(constant as u64));
                if bits == 64 {
                    self.module.typed_constant(ty, &[word as u32, (word >> 32) as u32])
                } else {
                    self.module.typed_constant(ty, &[word as u32])
                }
            }
            Operand::Register(register) if element.is_float() => {
                let value = self.register_value_as(register, bits)?;
                self.module.emit_on_ids(Op::ConvertSToF, ty, &[value])
            }
            Operand::Register(register) => self.register_value_as(register, bits)?,
        })
    }

    /// Returns the memory operands of a plain access; a private access to memory that is always aligned has
    /// none.
    pub(super) fn memory_operands(
        &mut self,
        access: &Access,
        alignment: Option<u32>,
        coherent: MemoryAccess,
    ) -> Result<Vec<dr::Operand>, Rule> {
        let mut bits = MemoryAccess::NONE;
        let mut operands = Vec::new();
        if let Some(alignment) = alignment {
            bits |= MemoryAccess::ALIGNED;
            operands.push(dr::Operand::LiteralBit32(alignment));
        }
        if self.context.variant.volatile && !matches!(access, Access::Private) {
            bits |= MemoryAccess::VOLATILE;
        }
        if self.context.variant.model == MemoryModel::Vulkan {
            match access {
                Access::Private | Access::Atomic { .. } => {}
                Access::NonPrivate => bits |= MemoryAccess::NON_PRIVATE_POINTER,
                Access::Coherent { scope } => {
                    bits |= coherent | MemoryAccess::NON_PRIVATE_POINTER;
                    operands.push(self.scope_id_operand(*scope)?);
                }
            }
        }
        if bits != MemoryAccess::NONE {
            operands.insert(0, dr::Operand::MemoryAccess(bits));
        }
        Ok(operands)
    }

    /// Returns the image operands of a plain access to a texel.
    pub(super) fn image_operands(
        &mut self,
        access: &Access,
        coherent: ImageOperands,
    ) -> Result<Vec<dr::Operand>, Rule> {
        if self.context.variant.model == MemoryModel::Glsl450 {
            return Ok(Vec::new());
        }
        let mut bits = ImageOperands::NONE;
        let mut operands = Vec::new();
        match access {
            Access::Private | Access::Atomic { .. } => return Ok(Vec::new()),
            Access::NonPrivate => bits |= ImageOperands::NON_PRIVATE_TEXEL,
            Access::Coherent { scope } => {
                bits |= coherent | ImageOperands::NON_PRIVATE_TEXEL;
                operands.push(self.scope_id_operand(*scope)?);
            }
        }
        if self.context.variant.volatile {
            bits |= ImageOperands::VOLATILE_TEXEL;
        }
        operands.insert(0, dr::Operand::ImageOperands(bits));
        Ok(operands)
    }
}
