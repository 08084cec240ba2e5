//! Computations of the symbolic execution: on known numbers, on registers, and as uninterpreted functions.

use std::rc::Rc;

use arithmetic::{
    Instruction, NumberKind, NumberShape, Operand, can_fold, fold, fold_extended, is_absorbing_operand, mask,
};
use litmus::ArithmeticOperation;
use rspirv::spirv::{GlslStd450Op, Op};
use spirv_reader::{SpirvInstruction, SpirvType};

use crate::constants::known_number;
use crate::executor::{Executor, Step};
use crate::function::FunctionCode;
use crate::relation::relation;
use crate::state::PathState;
use crate::value::{SymbolicNumber, SymbolicTruth, SymbolicValue, UndefOrigin};
use entry_point::{malformed, unsupported};

fn is_logical(op: Op) -> bool {
    matches!(op, Op::LogicalNot | Op::LogicalAnd | Op::LogicalOr | Op::LogicalEqual | Op::LogicalNotEqual)
}

/// Returns the truth of a comparison; `None` for other instructions.
fn compare_numbers(op: Op, numbers: &[SymbolicNumber], bits: u32) -> Option<SymbolicTruth> {
    let (relation, swapped, negated) = relation(op)?;
    let (left, right) = if swapped { (numbers[1], numbers[0]) } else { (numbers[0], numbers[1]) };
    let truth = SymbolicTruth::Compare { relation, left, right, bits };
    Some(if negated { SymbolicTruth::Not(Rc::new(truth)) } else { truth })
}

/// Returns the operation of litmus tests that computes the same, with its operands.
fn litmus_operation(
    op: Op,
    numbers: &[SymbolicNumber],
    bits: u32,
) -> Option<(ArithmeticOperation, SymbolicNumber, SymbolicNumber)> {
    let first = numbers[0];
    Some(match (op, numbers.get(1).copied()) {
        (Op::IAdd, Some(right)) => (ArithmeticOperation::Add, first, right),
        (Op::ISub, Some(right)) => (ArithmeticOperation::Subtract, first, right),
        (Op::IMul, Some(right)) => (ArithmeticOperation::Multiply, first, right),
        (Op::BitwiseAnd, Some(right)) => (ArithmeticOperation::And, first, right),
        (Op::BitwiseOr, Some(right)) => (ArithmeticOperation::Or, first, right),
        (Op::BitwiseXor, Some(right)) => (ArithmeticOperation::Xor, first, right),
        (Op::SNegate, _) => (ArithmeticOperation::Subtract, SymbolicNumber::Known(0), first),
        (Op::Not, _) => (ArithmeticOperation::Xor, first, SymbolicNumber::Known(mask(bits))),
        (Op::ShiftLeftLogical, Some(SymbolicNumber::Known(shift))) if shift < 32 => {
            (ArithmeticOperation::Multiply, first, SymbolicNumber::Known(1 << shift))
        }
        _ => return None,
    })
}

impl Executor<'_> {
    /// Executes a computation of core SPIR-V.
    pub(crate) fn compute(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        operands: &[u32],
    ) -> Step<SymbolicValue> {
        match (instruction.op, operands) {
            (Op::ConvertFToS | Op::ConvertFToU, [value]) => {
                match self.truncate_float(state, instruction, *value)? {
                    SymbolicValue::Opaque => self.apply_function(state, instruction, operands),
                    known => Ok(known),
                }
            }
            (Op::IAddCarry | Op::ISubBorrow | Op::UMulExtended | Op::SMulExtended, [left, right]) => {
                self.compute_wide_pair(state, instruction, [*left, *right])
            }
            (Op::SDot | Op::UDot | Op::SUDot | Op::SDotAccSat | Op::UDotAccSat | Op::SUDotAccSat, _) => {
                self.dot_product(state, instruction, operands)
            }
            (op, [_, ..]) if can_fold(op) || matches!(op, Op::Any | Op::All) => {
                self.compute_elementwise(state, instruction, op, operands)
            }
            // Floats are not computed.
            _ => self.apply_function(state, instruction, operands),
        }
    }

    /// Truncates a known 32-bit float to an integer, such as a pixel coordinate.
    fn truncate_float(
        &mut self,
        state: &PathState,
        instruction: &SpirvInstruction,
        value: u32,
    ) -> Step<SymbolicValue> {
        let (of, ty) = (self.type_of_id(state, value)?, instruction.ty);
        if self.specialized().scalar_bits(of)? != 32 || self.specialized().scalar_bits(ty)? != 32 {
            return Ok(SymbolicValue::Opaque);
        }
        let convert = |value: &SymbolicValue| match state.resolve_value(value) {
            SymbolicValue::Known(bits) => {
                let float = f32::from_bits(bits as u32);
                let integral_value =
                    if instruction.op == Op::ConvertFToS { float as i32 as u32 } else { float as u32 };
                SymbolicValue::Known(integral_value.into())
            }
            _ => SymbolicValue::Opaque,
        };
        match self.value_of_id(state, value)? {
            SymbolicValue::Composite(parts) => {
                Ok(SymbolicValue::Composite(Rc::new(parts.iter().map(convert).collect())))
            }
            one => Ok(convert(&one)),
        }
    }

    /// Computes sums and products with a high half, as a structure of two scalars or vectors.
    fn compute_wide_pair(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        [first, second]: [u32; 2],
    ) -> Step<SymbolicValue> {
        let ty = self.type_of_id(state, first)?;
        let (bits, scalar) = (self.specialized().scalar_bits(ty)?, self.specialized().is_scalar(ty)?);
        let shape = NumberShape { kind: NumberKind::Integer, bits, rows: 1, columns: 1 };
        let pair = |executor: &mut Self,
                    state: &mut PathState,
                    left: &SymbolicValue,
                    right: &SymbolicValue|
         -> Step<[SymbolicValue; 2]> {
            if let Some(undefined_operand) = [left, right].into_iter().find(|side| side.is_undefined_result())
            {
                return Ok([undefined_operand.clone(), undefined_operand.clone()]);
            }
            if [left, right].iter().any(|side| matches!(state.resolve_value(side), SymbolicValue::Opaque)) {
                return Ok([SymbolicValue::Opaque, SymbolicValue::Opaque]);
            }
            let is_open = |side| matches!(state.resolve_value(side), SymbolicValue::Register(_));
            if executor.context.has_functions() && [left, right].into_iter().any(is_open) {
                let operands = [left.clone(), right.clone()];
                let mut half = |component| {
                    let instruction = Instruction::Core(instruction.op);
                    let code = FunctionCode { instruction, component, bits: [bits; 2] };
                    executor.apply_to_numbers(state, code, &operands)
                };
                return Ok([half(0)?, half(1)?]);
            }
            let left = [executor.fork_to_known(state, left, "a computation")?];
            let right = [executor.fork_to_known(state, right, "a computation")?];
            let operands = [&left, &right].map(|numbers| Operand { numbers, shape });
            let halves = Instruction::Core(instruction.op).compute(&operands, &[shape, shape]);
            let halves = halves.and_then(|halves| <[u64; 2]>::try_from(halves).ok());
            let halves = halves.ok_or_else(|| unsupported(format!("Op{:?}", instruction.op)))?;
            Ok(halves.map(SymbolicValue::Known))
        };
        if scalar {
            let (left, right) = (self.value_of_id(state, first)?, self.value_of_id(state, second)?);
            return Ok(SymbolicValue::Composite(Rc::new(pair(self, state, &left, &right)?.to_vec())));
        }
        let (left, right) = (self.vector_components(state, first)?, self.vector_components(state, second)?);
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for (left, right) in left.iter().zip(&right) {
            let [of_low, of_high] = pair(self, state, left, right)?;
            low.push(of_low);
            high.push(of_high);
        }
        Ok(SymbolicValue::Composite(Rc::new(
            [low, high].map(|half| SymbolicValue::Composite(Rc::new(half))).to_vec(),
        )))
    }

    /// Computes integer dot products, also of packed vectors.
    fn dot_product(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        operands: &[u32],
    ) -> Step<SymbolicValue> {
        let mut rows = Vec::with_capacity(operands.len());
        for id in operands {
            let ty = self.type_of_id(state, *id)?;
            let parts = match self.specialized().is_scalar(ty)? {
                true => vec![self.value_of_id(state, *id)?],
                false => self.vector_components(state, *id)?,
            };
            let mut numbers = Vec::with_capacity(parts.len());
            for part in parts {
                if part == SymbolicValue::Opaque || part.is_undefined_result() {
                    return Ok(part);
                }
                numbers.push(self.fork_to_known(state, &part, "a computation")?);
            }
            let (bits, rows_of) = (self.specialized().scalar_bits(ty)?, numbers.len() as u32);
            rows.push((numbers, NumberShape { kind: NumberKind::Integer, bits, rows: rows_of, columns: 1 }));
        }
        let operands: Vec<Operand<'_>> =
            rows.iter().map(|(numbers, shape)| Operand { numbers, shape: *shape }).collect();
        let bits = self.specialized().scalar_bits(instruction.ty)?;
        let result = NumberShape { kind: NumberKind::Integer, bits, rows: 1, columns: 1 };
        let sum = Instruction::Core(instruction.op).compute(&operands, &[result]);
        Ok(match sum.as_deref() {
            Some([sum]) => SymbolicValue::Known(*sum),
            _ => self.undefined_result_value(instruction),
        })
    }

    /// Executes a componentwise instruction.
    pub(crate) fn compute_elementwise(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        op: Op,
        operands: &[u32],
    ) -> Step<SymbolicValue> {
        let module = self.context.module();
        let first = *operands.first().ok_or_else(|| malformed(format!("Op{op:?} without operands")))?;
        let arguments = operands.iter().map(|id| self.value_of_id(state, *id)).collect::<Step<Vec<_>>>()?;
        let of = self.type_of_id(state, first)?;
        let ty = instruction.ty;
        if op == Op::Bitcast && self.specialized().size_of(of)? != self.specialized().size_of(ty)? {
            return Err(malformed("a bitcast between types of different sizes").into());
        }
        if let SpirvType::Vector { count, .. } = module.type_of_id(ty)? {
            if op == Op::Bitcast
                && self.specialized().scalar_bits(of)? != self.specialized().scalar_bits(ty)?
            {
                return Ok(SymbolicValue::Composite(Rc::new(vec![SymbolicValue::Opaque; *count as usize])));
            }
            let (from, bits) = (self.specialized().scalar_bits(of)?, self.specialized().scalar_bits(ty)?);
            let mut parts = Vec::with_capacity(*count as usize);
            for index in 0..*count as usize {
                let one = arguments
                    .iter()
                    .map(|argument| match argument {
                        SymbolicValue::Known(_) | SymbolicValue::Register(_) | SymbolicValue::Truth(_) => {
                            Ok(argument.clone())
                        }
                        vector => self.extract_part(vector, index).map(|value| state.resolve_value(&value)),
                    })
                    .collect::<Step<Vec<_>>>()?;
                parts.push(self.compute_scalar(state, instruction, op, &one, from, bits)?);
            }
            return Ok(SymbolicValue::Composite(Rc::new(parts)));
        }
        if op == Op::Any || op == Op::All {
            let elements = self.vector_components(state, first)?;
            if let Some(undefined_element) = elements.iter().find(|element| element.is_undefined_result()) {
                return Ok(undefined_element.clone());
            }
            let mut all = op == Op::All;
            for element in &elements {
                let holds = self.fork_on_truth(state, element, "a truth")?;
                all = if op == Op::All { all && holds } else { all || holds };
            }
            return Ok(SymbolicValue::Known(u64::from(all)));
        }
        if !self.specialized().is_scalar(of)? || !self.specialized().is_scalar(ty)? {
            return match op {
                Op::Bitcast => Ok(SymbolicValue::Opaque),
                _ => Err(unsupported(format!("Op{op:?}")).into()),
            };
        }
        let (from, bits) = (self.specialized().scalar_bits(of)?, self.specialized().scalar_bits(ty)?);
        self.compute_scalar(state, instruction, op, &arguments, from, bits)
    }

    fn compute_scalar(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        op: Op,
        arguments: &[SymbolicValue],
        from: u32,
        bits: u32,
    ) -> Step<SymbolicValue> {
        let arguments: Vec<SymbolicValue> =
            arguments.iter().map(|argument| state.resolve_value(argument)).collect();
        if let Some(undefined_argument) = arguments.iter().find(|argument| argument.is_undefined_result()) {
            let is_single_value = |argument: &&SymbolicValue| {
                known_number(argument).is_some_and(|number| is_absorbing_operand(op, number, bits))
            };
            return Ok(arguments.iter().find(is_single_value).unwrap_or(undefined_argument).clone());
        }
        let is_truth = |argument: &SymbolicValue| matches!(argument, SymbolicValue::Truth(_));
        if is_logical(op) && arguments.iter().any(is_truth) {
            return self.compute_logical(state, op, &arguments);
        }
        if arguments.iter().any(|argument| matches!(argument, SymbolicValue::Opaque)) {
            return Ok(SymbolicValue::Opaque);
        }
        if arguments.iter().any(|argument| matches!(argument, SymbolicValue::Pointer(_))) {
            return Err(unsupported(format!("Op{op:?} of a pointer")).into());
        }
        let mut numbers = Vec::with_capacity(arguments.len());
        for argument in &arguments {
            numbers.push(self.resolve_number(state, argument, "a computation")?);
        }
        let known = numbers.iter().map(|number| match number {
            SymbolicNumber::Known(value) => Some(*value),
            SymbolicNumber::Register(_) => None,
        });
        if let Some(known) = known.collect::<Option<Vec<u64>>>() {
            return match fold(op, &known, from, bits) {
                Some(value) => Ok(SymbolicValue::Known(value)),
                None if can_fold(op) => Ok(self.undefined_result_value(instruction)),
                None => Err(unsupported(format!("Op{op:?}")).into()),
            };
        }
        // Registers of tests are compared as 32-bit numbers.
        let is_comparable = from <= 32 || !self.context.has_functions();
        if let Some(truth) = compare_numbers(op, &numbers, from).filter(|_| is_comparable) {
            return Ok(SymbolicValue::Truth(Rc::new(truth)));
        }
        self.compute_open_numbers(state, op, &arguments, &numbers, from, bits)
    }

    /// Computes with registers: by instructions of litmus tests, by a function, or for each of their values.
    fn compute_open_numbers(
        &mut self,
        state: &mut PathState,
        op: Op,
        arguments: &[SymbolicValue],
        numbers: &[SymbolicNumber],
        from: u32,
        bits: u32,
    ) -> Step<SymbolicValue> {
        let all_ones = SymbolicNumber::Known(mask(bits));
        match litmus_operation(op, numbers, bits) {
            Some((operation, left, right)) if bits <= 32 && from <= 32 => {
                match self.compute_number(state, operation, left, right)? {
                    SymbolicValue::Register(register) if bits < 32 => {
                        let left = SymbolicNumber::Register(register);
                        self.compute_number(state, ArithmeticOperation::And, left, all_ones)
                    }
                    other => Ok(other),
                }
            }
            None if matches!(op, Op::UConvert | Op::Bitcast) && bits >= from => Ok(arguments[0].clone()),
            None if op == Op::UConvert && from <= 32 => {
                self.compute_number(state, ArithmeticOperation::And, numbers[0], all_ones)
            }
            _ if self.context.has_functions() => {
                let instruction = Instruction::Core(op);
                let code = FunctionCode { instruction, component: 0, bits: [from, bits] };
                self.apply_to_numbers(state, code, arguments)
            }
            _ => {
                // An operation without a litmus equivalent is computed for each value of its operands.
                for argument in arguments {
                    self.fork_to_known(state, argument, &format!("Op{op:?}"))?;
                }
                Err(unsupported(format!("Op{op:?}")).into())
            }
        }
    }

    pub(crate) fn undefined_result_value(&self, instruction: &SpirvInstruction) -> SymbolicValue {
        SymbolicValue::Undefined(UndefOrigin::UndefinedResult(instruction.result, self.thread))
    }

    fn compute_logical(
        &mut self,
        state: &mut PathState,
        op: Op,
        arguments: &[SymbolicValue],
    ) -> Step<SymbolicValue> {
        let mut truths = Vec::new();
        for argument in arguments {
            truths.push(match argument {
                SymbolicValue::Truth(truth) => truth.clone(),
                SymbolicValue::Opaque => return Ok(SymbolicValue::Opaque),
                other => Rc::new(SymbolicTruth::Known(self.fork_on_truth(state, other, "a truth")?)),
            });
        }
        let not = |truth: &Rc<SymbolicTruth>| Rc::new(SymbolicTruth::Not(truth.clone()));
        let truth = match (op, &truths[..]) {
            (Op::LogicalNot, [inner]) => SymbolicTruth::Not(inner.clone()),
            (Op::LogicalAnd, [left, right]) => SymbolicTruth::And(left.clone(), right.clone()),
            (Op::LogicalOr, [left, right]) => {
                SymbolicTruth::Not(Rc::new(SymbolicTruth::And(not(left), not(right))))
            }
            (Op::LogicalEqual, [left, right]) => SymbolicTruth::Equal(left.clone(), right.clone()),
            (Op::LogicalNotEqual, [left, right]) => SymbolicTruth::Equal(left.clone(), not(right)),
            _ => return Err(malformed(format!("Op{op:?} with these operands")).into()),
        };
        Ok(state.resolve_value(&SymbolicValue::Truth(Rc::new(truth))))
    }

    /// Executes a computation of `GLSL.std.450`.
    pub(crate) fn compute_extended(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        op: GlslStd450Op,
        operands: &[u32],
    ) -> Step<SymbolicValue> {
        let (module, ty) = (self.context.module(), instruction.ty);
        let integer = match module.type_of_id(ty)? {
            SpirvType::Vector { element, .. } => {
                matches!(module.type_of_id(*element)?, SpirvType::Integer { .. })
            }
            other => matches!(other, SpirvType::Integer { .. }),
        };
        if !integer || self.context.has_functions() && !self.has_known_operands(state, operands)? {
            return self.apply_function(state, instruction, operands);
        }
        let bits = self.specialized().scalar_bits(ty)?;
        let arguments = operands.iter().map(|id| self.value_of_id(state, *id)).collect::<Step<Vec<_>>>()?;
        let count = match module.type_of_id(ty)? {
            SpirvType::Vector { count, .. } => Some(*count as usize),
            _ => None,
        };
        let mut results = Vec::new();
        for index in 0..count.unwrap_or(1) {
            let mut numbers = Vec::new();
            let (mut opaque, mut lacking) = (false, None);
            for argument in &arguments {
                let one =
                    if count.is_some() { self.extract_part(argument, index)? } else { argument.clone() };
                if one.is_undefined_result() {
                    lacking = Some(one);
                } else if matches!(state.resolve_value(&one), SymbolicValue::Opaque) {
                    opaque = true;
                } else {
                    numbers.push(self.fork_to_known(state, &one, &format!("{op:?}"))?);
                }
            }
            results.push(if let Some(undefined_argument) = lacking {
                undefined_argument
            } else if opaque {
                SymbolicValue::Opaque
            } else {
                let folded = fold_extended(op, &numbers, bits, bits);
                SymbolicValue::Known(folded.ok_or_else(|| unsupported(format!("{op:?}")))?)
            });
        }
        Ok(match count {
            Some(_) => SymbolicValue::Composite(Rc::new(results)),
            None => results.pop().unwrap_or(SymbolicValue::Opaque),
        })
    }
}
