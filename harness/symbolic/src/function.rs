//! Functions of read values: operations and positions that litmus tests cannot express.
//!
//! If loads may return every number, an operation without a litmus equivalent has no list of results, and an index
//! no list of cells. The comparison of modules then treats the operation as a function without a definition: equal
//! operations on equal operands have equal results. A position is an expression over read values. The lifted
//! test only encodes both ([`emit`]). The simulation decodes them; the model never
//! evaluates them.
//!
//! This assumes one result of an operation for equal operands, also for floats and for operations without a
//! defined result, and that a product and a sum may be fused. Positions are numbers of 32 bits, as are sizes of
//! buffers.

use std::rc::Rc;

use arithmetic::{Instruction, NumberKind};
use litmus::ArithmeticOperation;
use rspirv::spirv::{GlslStd450Op, Op};
use spirv_reader::{SpirvInstruction, SpirvType};

use crate::emit;
use crate::executor::{Executor, Step};
use crate::state::PathState;
use crate::value::{
    NumberDomain, OrderRelation, SymbolicNumber, SymbolicPointer, SymbolicTruth, SymbolicValue,
};

/// The number of operands that a function takes at most.
const MAX_OPERANDS: usize = 64;
/// The code of the first operand of every function.
pub const FIRST_OPERAND: u32 = 0;
/// Set in the codes of all functions.
const FUNCTION_BIT: u32 = 1 << 26;
/// Set if the order of the two operands does not matter.
pub const COMMUTATIVE_BIT: u32 = 1 << 27;
/// Set for the negation of floats.
pub const NEGATION_BIT: u32 = 1 << 28;
/// Set for the product of floats.
pub const PRODUCT_BIT: u32 = 1 << 29;

/// The identity of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FunctionCode {
    pub instruction: Instruction,
    pub component: u32,
    /// The bits of a scalar of the operands and of the result.
    pub bits: [u32; 2],
}

impl FunctionCode {
    /// Returns the number of the function; `None` for an instruction that is none.
    fn to_code(self) -> Option<u32> {
        let instruction = match self.instruction {
            Instruction::Core(op) => op as u32,
            Instruction::Extended(op) => 1 << 15 | op as u32,
            Instruction::Unpack(_) | Instruction::Pack(_) => return None,
        };
        let [from, to] = self.bits.map(|bits| bits.trailing_zeros().min(7));
        // 16 bits of an instruction, 4 of a component and 3 for each width.
        let is_small = instruction < 1 << 16 && self.component < 16;
        let number = instruction | self.component << 16 | from << 20 | to << 23 | FUNCTION_BIT;
        is_small.then_some(number | self.rule_bits())
    }

    /// Returns the rules of arithmetic for the function.
    fn rule_bits(self) -> u32 {
        match self.instruction {
            Instruction::Core(Op::FNegate) => NEGATION_BIT,
            Instruction::Core(Op::FMul) => PRODUCT_BIT | COMMUTATIVE_BIT,
            Instruction::Core(
                Op::FAdd | Op::IAdd | Op::IMul | Op::BitwiseAnd | Op::BitwiseOr | Op::BitwiseXor,
            )
            | Instruction::Extended(
                GlslStd450Op::UMin
                | GlslStd450Op::UMax
                | GlslStd450Op::SMin
                | GlslStd450Op::SMax
                | GlslStd450Op::FMin
                | GlslStd450Op::FMax,
            ) => COMMUTATIVE_BIT,
            _ => 0,
        }
    }

    /// Computes an operation on known floats as optimizers do; `None` for other operations and operands.
    ///
    /// The result is one of those that SPIR-V allows.
    fn fold_floats(self, operands: &[SymbolicValue]) -> Option<u64> {
        let kind = match self.instruction {
            Instruction::Core(Op::ConvertSToF | Op::ConvertUToF) => NumberKind::Integer,
            Instruction::Core(
                Op::FAdd
                | Op::FMul
                | Op::FDiv
                | Op::FNegate
                | Op::FOrdEqual
                | Op::FOrdNotEqual
                | Op::FOrdLessThan
                | Op::FOrdLessThanEqual
                | Op::FOrdGreaterThan
                | Op::FOrdGreaterThanEqual,
            ) => NumberKind::Float,
            Instruction::Extended(op)
                if is_componentwise(self.instruction) && is_foldable_float_operation(op) =>
            {
                NumberKind::Float
            }
            _ => return None,
        };
        let known = |operand: &SymbolicValue| match operand {
            SymbolicValue::Known(number) => Some(*number),
            _ => None,
        };
        let numbers = operands.iter().map(known).collect::<Option<Vec<u64>>>()?;
        self.instruction.compute_component(&numbers, kind, self.bits[0], self.bits[1])
    }

    fn with_instruction(self, instruction: Instruction) -> FunctionCode {
        FunctionCode { instruction, ..self }
    }
}

/// Returns the bits of a scalar that a function takes, from its code.
pub fn operand_bits(code: u32) -> u32 {
    1 << (code >> 20 & 7)
}

/// Returns the negation of floats with the widths of another function.
pub fn negation_of(code: u32) -> u32 {
    const WIDTHS: u32 = 0x3f << 20;
    Op::FNegate as u32 | code & WIDTHS | FUNCTION_BIT | NEGATION_BIT
}

/// Returns the instruction of each component: a vector times a scalar multiplies each of them.
fn component_instruction(instruction: Instruction) -> Instruction {
    match instruction {
        Instruction::Core(Op::VectorTimesScalar) => Instruction::Core(Op::FMul),
        other => other,
    }
}

/// Returns true for operations on floats that optimizers compute if the operands are constants.
fn is_foldable_float_operation(op: GlslStd450Op) -> bool {
    use GlslStd450Op::{
        Cos, Exp, Exp2, FAbs, FClamp, FMax, FMin, FMix, Floor, Log, Log2, Pow, Sin, Sqrt, Tan,
    };
    matches!(
        op,
        Cos | Exp | Exp2 | FAbs | FClamp | FMax | FMin | FMix | Floor | Log | Log2 | Pow | Sin | Sqrt | Tan
    )
}

/// Returns true if each component of the result depends only on that component of the operands.
fn is_componentwise(instruction: Instruction) -> bool {
    match instruction {
        Instruction::Core(op) => !matches!(
            op,
            Op::Dot
                | Op::OuterProduct
                | Op::Transpose
                | Op::MatrixTimesVector
                | Op::VectorTimesMatrix
                | Op::MatrixTimesMatrix
                | Op::MatrixTimesScalar
        ),
        Instruction::Extended(op) => !matches!(
            op,
            GlslStd450Op::Length
                | GlslStd450Op::Distance
                | GlslStd450Op::Cross
                | GlslStd450Op::Normalize
                | GlslStd450Op::FaceForward
                | GlslStd450Op::Reflect
                | GlslStd450Op::Refract
                | GlslStd450Op::Determinant
                | GlslStd450Op::MatrixInverse
        ),
        Instruction::Unpack(_) | Instruction::Pack(_) => false,
    }
}

impl Executor<'_> {
    /// Executes an instruction as a function; opaque if it is none.
    pub fn apply_function(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        operands: &[u32],
    ) -> Step<SymbolicValue> {
        let module = self.context.module();
        let spirv_reader::SpirvOperation::Compute { instruction: code, .. } = module.operation(instruction)
        else {
            return Ok(SymbolicValue::Opaque);
        };
        let count = match module.type_of_id(instruction.ty)? {
            SpirvType::Vector { count, .. } => Some(*count as usize),
            _ if self.specialized().is_scalar(instruction.ty)? => None,
            _ => return Ok(SymbolicValue::Opaque),
        };
        if !self.context.has_functions() {
            return Ok(SymbolicValue::Opaque);
        }
        let mut from = 1;
        let mut by_operand = Vec::with_capacity(operands.len());
        for id in operands {
            let ty = self.type_of_id(state, *id)?;
            let mut parts = Vec::new();
            let value = self.value_of_id(state, *id)?;
            let Some(bits) = self.flatten_numbers(state, ty, &value, &mut parts)? else {
                return Ok(SymbolicValue::Opaque);
            };
            from = from.max(bits);
            by_operand.push(parts);
        }
        let bits = self.specialized().scalar_bits(instruction.ty)?;
        let own = count.unwrap_or(1);
        let is_componentwise =
            is_componentwise(code) && by_operand.iter().all(|parts| [1, own].contains(&parts.len()));
        let mut results = Vec::with_capacity(own);
        for component in 0..own {
            let numbers: Vec<SymbolicValue> = if is_componentwise {
                by_operand
                    .iter()
                    .filter_map(|parts| parts.get(component).or_else(|| parts.first()))
                    .cloned()
                    .collect()
            } else {
                by_operand.iter().flatten().cloned().collect()
            };
            let component = if is_componentwise { 0 } else { component as u32 };
            let code =
                FunctionCode { instruction: component_instruction(code), component, bits: [from, bits] };
            results.push(self.apply_to_numbers(state, code, &numbers)?);
        }
        Ok(match (count, results.pop()) {
            (Some(_), Some(last)) => {
                results.push(last);
                SymbolicValue::Composite(Rc::new(results))
            }
            (_, one) => one.unwrap_or(SymbolicValue::Opaque),
        })
    }

    /// Adds the scalars of a value, and returns their bits; `None` if a scalar is not a number.
    fn flatten_numbers(
        &mut self,
        state: &PathState,
        ty: u32,
        value: &SymbolicValue,
        parts: &mut Vec<SymbolicValue>,
    ) -> Step<Option<u32>> {
        if self.specialized().is_scalar(ty)? {
            if parts.len() >= MAX_OPERANDS {
                return Ok(None);
            }
            let number = match state.resolve_value(value) {
                SymbolicValue::Null => SymbolicValue::Known(0),
                number @ (SymbolicValue::Known(_) | SymbolicValue::Register(_) | SymbolicValue::Truth(_)) => {
                    number
                }
                _ => return Ok(None),
            };
            parts.push(number);
            return Ok(Some(self.specialized().scalar_bits(ty)?));
        }
        if !matches!(
            self.context.module().type_of_id(ty)?,
            SpirvType::Vector { .. } | SpirvType::Matrix { .. }
        ) {
            return Ok(None);
        }
        let mut bits = Some(1);
        for index in 0..self.specialized().part_count(ty)? {
            let inner = self.specialized().part_of(ty, index as u64)?.ty;
            let part = self.extract_part(value, index)?;
            bits = self.flatten_numbers(state, inner, &part, parts)?;
            if bits.is_none() {
                break;
            }
        }
        Ok(bits)
    }

    /// Returns true if all scalars of operands have one value.
    pub(crate) fn has_known_operands(&mut self, state: &PathState, operands: &[u32]) -> Step<bool> {
        let mut parts = Vec::new();
        for id in operands {
            let (ty, value) = (self.type_of_id(state, *id)?, self.value_of_id(state, *id)?);
            if self.flatten_numbers(state, ty, &value, &mut parts)?.is_none() {
                // Opaque and undefined operands have their own rules.
                return Ok(true);
            }
        }
        Ok(parts.iter().all(|part| matches!(part, SymbolicValue::Known(_))))
    }

    /// Applies a function to numbers.
    pub(crate) fn apply_to_numbers(
        &mut self,
        state: &mut PathState,
        code: FunctionCode,
        operands: &[SymbolicValue],
    ) -> Step<SymbolicValue> {
        // Optimizers replace these by each other.
        match (code.instruction, operands) {
            (Instruction::Extended(GlslStd450Op::Fma), [left, right, more]) => {
                let product = [left.clone(), right.clone()];
                let product = self.apply_to_numbers(
                    state,
                    code.with_instruction(Instruction::Core(Op::FMul)),
                    &product,
                )?;
                let sum = [product, more.clone()];
                return self.apply_to_numbers(
                    state,
                    code.with_instruction(Instruction::Core(Op::FAdd)),
                    &sum,
                );
            }
            (Instruction::Core(Op::FSub), [left, right]) => {
                let right = std::slice::from_ref(right);
                let negative = self.apply_to_numbers(
                    state,
                    code.with_instruction(Instruction::Core(Op::FNegate)),
                    right,
                )?;
                let sum = [left.clone(), negative];
                return self.apply_to_numbers(
                    state,
                    code.with_instruction(Instruction::Core(Op::FAdd)),
                    &sum,
                );
            }
            _ => {}
        }
        let Some(number) = code.to_code() else { return Ok(SymbolicValue::Opaque) };
        if let Some(folded) = code.fold_floats(operands) {
            return Ok(match code.bits[1] {
                1 => SymbolicValue::Truth(Rc::new(SymbolicTruth::Known(folded != 0))),
                _ => SymbolicValue::Known(folded),
            });
        }
        let mut numbers = Vec::with_capacity(operands.len());
        for operand in operands {
            if *operand == SymbolicValue::Opaque {
                return Ok(SymbolicValue::Opaque);
            }
            numbers.push(self.resolve_number(state, operand, "a computation")?);
        }
        // The list of operands is a term that starts with a separate function, so that no rule of arithmetic
        // changes it.
        let Some((first, others)) = numbers.split_first() else { return Ok(SymbolicValue::Opaque) };
        let mut list = self.new_register(state, NumberDomain::Any)?;
        self.emit_instruction(emit::function_application(list, FIRST_OPERAND, *first))?;
        for other in others {
            let longer = self.new_register(state, NumberDomain::Any)?;
            let pair = (SymbolicNumber::Register(list), *other);
            self.emit_instruction(emit::arithmetic(longer, ArithmeticOperation::Divide, pair.0, pair.1))?;
            list = longer;
        }
        let result = self.new_register(state, NumberDomain::Any)?;
        self.emit_instruction(emit::function_application(result, number, SymbolicNumber::Register(list)))?;
        if code.bits[1] > 1 {
            return Ok(SymbolicValue::Register(result));
        }
        let is_zero = SymbolicTruth::Compare {
            relation: OrderRelation::Equal,
            left: SymbolicNumber::Register(result),
            right: SymbolicNumber::Known(0),
            bits: 32,
        };
        Ok(SymbolicValue::Truth(Rc::new(SymbolicTruth::Not(Rc::new(is_zero)))))
    }

    /// Returns the element of an array of shared memory at an index that depends on read values.
    pub(crate) fn variable_element(
        &mut self,
        state: &mut PathState,
        pointer: &SymbolicPointer,
        index: &SymbolicValue,
        id: u32,
    ) -> Step<Option<SymbolicPointer>> {
        let module = self.context.module();
        let SymbolicValue::Register(index) = state.resolve_value(index) else { return Ok(None) };
        let is_array = matches!(
            module.type_of_id(pointer.ty)?,
            SpirvType::Array { .. } | SpirvType::RuntimeArray { .. } | SpirvType::Vector { .. }
        );
        if !self.context.has_functions()
            || !is_array
            || self.storage_class(pointer.object).is_none()
            || self.context.is_descriptor_array(pointer.object.variable, pointer.ty)
            || self.specialized().scalar_bits(self.type_of_id(state, id)?)? != 32
        {
            return Ok(None);
        }
        let element = self.specialized().part_of(pointer.ty, 0)?;
        let stride = SymbolicNumber::Known(element.stride.unwrap_or(0));
        let index = SymbolicNumber::Register(index);
        let mut offset = self.compute_number(state, ArithmeticOperation::Multiply, index, stride)?;
        if let (Some(outer), SymbolicValue::Register(own)) = (pointer.variable_offset, &offset) {
            let (outer, own) = (SymbolicNumber::Register(outer), SymbolicNumber::Register(*own));
            offset = self.compute_number(state, ArithmeticOperation::Add, outer, own)?;
        }
        let SymbolicValue::Register(register) = offset else { return Ok(None) };
        let (ty, stride) = (element.ty, element.stride);
        Ok(Some(SymbolicPointer { variable_offset: Some(register), ty, stride, ..*pointer }))
    }

    /// Emits the mark of a variable position in front of its access.
    pub(crate) fn emit_position(&mut self, pointer: &SymbolicPointer) -> Step<()> {
        if let Some(register) = pointer.variable_offset {
            self.emit_instruction(emit::position_mark(register, pointer.offset))?;
        }
        Ok(())
    }
}
