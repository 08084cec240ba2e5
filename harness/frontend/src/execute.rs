//! What single instructions do: memory, atomics and computations.

use std::rc::Rc;

use arithmetic::{Kind, NumberShape, Operand, decides, fold, fold_extended, folds, mask, values_of};
use litmus::{ArithmeticOperation, InterlockEnd};
use rspirv::spirv::{GlslStd450Op, Op, StorageClass};

use crate::access::Way;
use crate::emit;
use crate::error::{malformed, unsupported};
use crate::layout::known;
use crate::module::{Instruction, Type};
use crate::order::{MemoryOperands, scope, semantics};
use crate::relation::relation;
use crate::stage;
use crate::state::State;
use crate::value::{Number, Object, Origin, Pointer, Truth, Value};
use crate::walk::{Step, Walk};

impl Walk<'_> {
    /// What an id means here.
    pub(crate) fn value(&mut self, state: &State, id: u32) -> Step<Value> {
        if let Some(value) = state.frames.last().and_then(|frame| frame.values.get(&id)) {
            return Ok(state.resolved(value));
        }
        if let Some(constant) = self.spec().constant(id) {
            return Ok(match constant {
                Value::Undefined(Origin::Instruction(id, _)) => {
                    Value::Undefined(Origin::Instruction(*id, self.thread))
                }
                other => other.clone(),
            });
        }
        let module = self.setting.module();
        if let Some(variable) = module.variables.get(&id) {
            let decorations = module.decorations(id);
            let object = Object {
                variable: self.setting.canonical(id),
                instance: match variable.class {
                    StorageClass::Workgroup => u64::from(self.identity.workgroup_index),
                    _ => 0,
                },
            };
            let coherent = decorations.coherent || decorations.volatile;
            return Ok(Value::Pointer(Pointer {
                object,
                offset: 0,
                ty: variable.ty,
                stride: None,
                coherent,
            }));
        }
        Err(malformed(format!("{} has no value here", module.name(id))).into())
    }

    pub(crate) fn operand(&mut self, state: &State, instruction: &Instruction, index: usize) -> Step<Value> {
        let id = self.setting.module().operand(instruction, index)?;
        self.value(state, id)
    }

    /// The type of an operand that is a result of this function or a constant.
    pub(crate) fn type_of_operand(
        &self,
        state: &State,
        instruction: &Instruction,
        index: usize,
    ) -> Step<u32> {
        let module = self.setting.module();
        let id = module.operand(instruction, index)?;
        if let Some((ty, _)) = module.constants.get(&id) {
            return Ok(*ty);
        }
        let function = state.frames.last().map_or(0, |frame| frame.function);
        let ty = self.setting.result_type(function, id);
        ty.ok_or_else(|| malformed(format!("{} has no type here", module.name(id))).into())
    }

    /// Executes an instruction that control passes through.
    pub(crate) fn execute(&mut self, state: &mut State, instruction: &Instruction) -> Step<Value> {
        let module = self.setting.module();
        let operands = module.operands(instruction).to_vec();
        match instruction.op {
            Op::Load => {
                let pointer = self.pointer(state, instruction, 0)?;
                let way = Way {
                    operands: MemoryOperands::parse(operands.get(1..).unwrap_or_default()),
                    coherent: pointer.coherent,
                };
                self.load(state, pointer, instruction.ty, way)
            }
            Op::Store => {
                let pointer = self.pointer(state, instruction, 0)?;
                let value = self.operand(state, instruction, 1)?;
                let way = Way {
                    operands: MemoryOperands::parse(operands.get(2..).unwrap_or_default()),
                    coherent: pointer.coherent,
                };
                self.store(state, pointer, pointer.ty, &value, way)?;
                Ok(Value::Opaque)
            }
            Op::CopyMemory => {
                let to = self.pointer(state, instruction, 0)?;
                let from = self.pointer(state, instruction, 1)?;
                let operands = MemoryOperands::parse(operands.get(2..).unwrap_or_default());
                let value = self.load(state, from, from.ty, Way { operands, coherent: from.coherent })?;
                self.store(state, to, to.ty, &value, Way { operands, coherent: to.coherent })?;
                Ok(Value::Opaque)
            }
            Op::AccessChain | Op::InBoundsAccessChain => self.access_chain(state, instruction, 1),
            Op::PtrAccessChain | Op::InBoundsPtrAccessChain => self.access_chain(state, instruction, 2),
            Op::PtrEqual | Op::PtrNotEqual | Op::PtrDiff => self.compare(state, instruction),
            Op::ArrayLength => {
                let pointer = self.pointer(state, instruction, 0)?;
                let member = u64::from(*operands.get(1).ok_or_else(|| malformed("no member"))?);
                let at = self.spec().part_of(pointer.ty, member)?;
                let stride = self.spec().part_of(at.ty, 0)?.stride.unwrap_or(1);
                let start = pointer.offset.wrapping_add(at.offset);
                Ok(Value::Known(self.setting.array_length(pointer.object, start, stride)))
            }
            Op::CompositeConstruct => {
                let mut parts = Vec::new();
                let vector = matches!(module.ty(instruction.ty)?, Type::Vector { .. });
                for index in 0..operands.len() {
                    let value = self.operand(state, instruction, index)?;
                    match value {
                        Value::Composite(inner) if vector => parts.extend(inner.iter().cloned()),
                        other => parts.push(other),
                    }
                }
                Ok(Value::Composite(Rc::new(parts)))
            }
            Op::CompositeExtract => {
                let mut value = self.operand(state, instruction, 0)?;
                for index in operands.get(1..).unwrap_or_default() {
                    value = self.part(&value, *index as usize)?;
                }
                Ok(state.resolved(&value))
            }
            Op::CompositeInsert => {
                let object = self.operand(state, instruction, 0)?;
                let composite = self.operand(state, instruction, 1)?;
                let path = operands.get(2..).unwrap_or_default();
                self.inserted(&composite, instruction.ty, path, object)
            }
            Op::VectorShuffle => {
                let first = self.vector(state, instruction, 0)?;
                let second = self.vector(state, instruction, 1)?;
                let place = Origin::Instruction(instruction.result, self.thread);
                let parts = operands.get(2..).unwrap_or_default().iter().map(|index| {
                    let index = *index as usize;
                    let value =
                        if index < first.len() { first.get(index) } else { second.get(index - first.len()) };
                    value.cloned().unwrap_or(Value::Undefined(place))
                });
                Ok(Value::Composite(Rc::new(parts.collect())))
            }
            Op::VectorExtractDynamic => {
                let vector = self.operand(state, instruction, 0)?;
                let index = self.operand(state, instruction, 1)?;
                let index = self.known(state, &index, "an index")?;
                let ty = self.type_of_operand(state, instruction, 0)?;
                if index >= self.spec().count(ty)? as u64 {
                    return Ok(self.lacking(instruction));
                }
                let value = self.part(&vector, index as usize)?;
                Ok(state.resolved(&value))
            }
            Op::VectorInsertDynamic => {
                let vector = self.operand(state, instruction, 0)?;
                let object = self.operand(state, instruction, 1)?;
                let index = self.operand(state, instruction, 2)?;
                let index = self.known(state, &index, "an index")?;
                if index >= self.spec().count(instruction.ty)? as u64 {
                    return Ok(self.lacking(instruction));
                }
                self.inserted(&vector, instruction.ty, &[index as u32], object)
            }
            Op::CopyObject | Op::CopyLogical => self.operand(state, instruction, 0),
            Op::Undef => Ok(Value::Undefined(Origin::Instruction(instruction.result, self.thread))),
            Op::Select => self.select(state, instruction),
            Op::IAddCarry | Op::ISubBorrow | Op::UMulExtended | Op::SMulExtended => {
                self.two_halves(state, instruction)
            }
            Op::SDot | Op::UDot | Op::SUDot | Op::SDotAccSat | Op::UDotAccSat | Op::SUDotAccSat => {
                self.dot(state, instruction)
            }
            Op::MemoryBarrier => {
                let value = self.operand(state, instruction, 0)?;
                let at = self.known(state, &value, "a scope")?;
                let value = self.operand(state, instruction, 1)?;
                let order = semantics(self.known(state, &value, "semantics")?)?;
                if order.order != litmus::Order::Relaxed {
                    self.emit(emit::memory_barrier(scope(at, module.vulkan)?, order))?;
                }
                Ok(Value::Opaque)
            }
            Op::ControlBarrierArriveINTEL | Op::ControlBarrierWaitINTEL => {
                self.split_barrier(state, instruction)?;
                Ok(Value::Opaque)
            }
            Op::BeginInvocationInterlockEXT => {
                self.section(state, InterlockEnd::Begin)?;
                Ok(Value::Opaque)
            }
            Op::EndInvocationInterlockEXT => {
                self.section(state, InterlockEnd::End)?;
                Ok(Value::Opaque)
            }
            Op::ExtInst => self.extended(state, instruction),
            op if is_atomic(op) => self.atomic(state, instruction),
            op if is_group(op) => Ok(Value::Opaque),
            Op::IsHelperInvocationEXT => Ok(Value::Known(0)),
            Op::ConvertFToS | Op::ConvertFToU => self.whole(state, instruction),
            Op::ReadClockKHR => Ok(Value::Opaque),
            op if stage::is_derivative(op) => Ok(Value::Opaque),
            op if is_float(op) => Ok(Value::Opaque),
            op => self.elementwise(state, instruction, op),
        }
    }

    /// Numbers of 32 bits without what is behind their point: those that are known, such as the coordinates of a pixel.
    fn whole(&mut self, state: &State, instruction: &Instruction) -> Step<Value> {
        let (of, ty) = (self.type_of_operand(state, instruction, 0)?, instruction.ty);
        if self.spec().bits(of)? != 32 || self.spec().bits(ty)? != 32 {
            return Ok(Value::Opaque);
        }
        let convert = |value: &Value| match state.resolved(value) {
            Value::Known(bits) => {
                let float = f32::from_bits(bits as u32);
                let whole =
                    if instruction.op == Op::ConvertFToS { float as i32 as u32 } else { float as u32 };
                Value::Known(whole.into())
            }
            _ => Value::Opaque,
        };
        match self.operand(state, instruction, 0)? {
            Value::Composite(parts) => Ok(Value::Composite(Rc::new(parts.iter().map(convert).collect()))),
            one => Ok(convert(&one)),
        }
    }

    /// Sums and products with a second half: a structure of two numbers, or of two vectors.
    fn two_halves(&mut self, state: &mut State, instruction: &Instruction) -> Step<Value> {
        let ty = self.type_of_operand(state, instruction, 0)?;
        let (bits, scalar) = (self.spec().bits(ty)?, self.spec().is_scalar(ty)?);
        let shape = NumberShape { kind: Kind::Integer, bits, rows: 1, columns: 1 };
        let pair = |walk: &mut Self, state: &mut State, left: &Value, right: &Value| -> Step<[Value; 2]> {
            if let Some(lacking) = [left, right].into_iter().find(|side| side.is_lacking()) {
                return Ok([lacking.clone(), lacking.clone()]);
            }
            if [left, right].iter().any(|side| matches!(state.resolved(side), Value::Opaque)) {
                return Ok([Value::Opaque, Value::Opaque]);
            }
            let left = [walk.known(state, left, "a computation")?];
            let right = [walk.known(state, right, "a computation")?];
            let operands = [&left, &right].map(|numbers| Operand { numbers, shape });
            let halves = arithmetic::Instruction::Core(instruction.op).compute(&operands, &[shape, shape]);
            let halves = halves.and_then(|halves| <[u64; 2]>::try_from(halves).ok());
            let halves = halves.ok_or_else(|| unsupported(format!("Op{:?}", instruction.op)))?;
            Ok(halves.map(Value::Known))
        };
        if scalar {
            let (left, right) = (self.operand(state, instruction, 0)?, self.operand(state, instruction, 1)?);
            return Ok(Value::Composite(Rc::new(pair(self, state, &left, &right)?.to_vec())));
        }
        let (left, right) = (self.vector(state, instruction, 0)?, self.vector(state, instruction, 1)?);
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for (left, right) in left.iter().zip(&right) {
            let [of_low, of_high] = pair(self, state, left, right)?;
            low.push(of_low);
            high.push(of_high);
        }
        Ok(Value::Composite(Rc::new([low, high].map(|half| Value::Composite(Rc::new(half))).to_vec())))
    }

    /// Products of vectors of integers, which may be packed into numbers.
    fn dot(&mut self, state: &mut State, instruction: &Instruction) -> Step<Value> {
        let count = values_of(instruction.op, self.setting.module().operands(instruction).len());
        let mut rows = Vec::with_capacity(count);
        for index in 0..count {
            let ty = self.type_of_operand(state, instruction, index)?;
            let parts = match self.spec().is_scalar(ty)? {
                true => vec![self.operand(state, instruction, index)?],
                false => self.vector(state, instruction, index)?,
            };
            let mut numbers = Vec::with_capacity(parts.len());
            for part in parts {
                if part == Value::Opaque || part.is_lacking() {
                    return Ok(part);
                }
                numbers.push(self.known(state, &part, "a computation")?);
            }
            let (bits, rows_of) = (self.spec().bits(ty)?, numbers.len() as u32);
            rows.push((numbers, NumberShape { kind: Kind::Integer, bits, rows: rows_of, columns: 1 }));
        }
        let operands: Vec<Operand<'_>> =
            rows.iter().map(|(numbers, shape)| Operand { numbers, shape: *shape }).collect();
        let bits = self.spec().bits(instruction.ty)?;
        let result = NumberShape { kind: Kind::Integer, bits, rows: 1, columns: 1 };
        let sum = arithmetic::Instruction::Core(instruction.op).compute(&operands, &[result]);
        Ok(match sum.as_deref() {
            Some([sum]) => Value::Known(*sum),
            _ => self.lacking(instruction),
        })
    }

    fn vector(&mut self, state: &State, instruction: &Instruction, index: usize) -> Step<Vec<Value>> {
        let ty = self.type_of_operand(state, instruction, index)?;
        let count = self.spec().count(ty)?;
        let value = self.operand(state, instruction, index)?;
        (0..count).map(|part| self.part(&value, part)).collect()
    }

    fn inserted(&mut self, composite: &Value, ty: u32, path: &[u32], object: Value) -> Step<Value> {
        let Some((first, rest)) = path.split_first() else { return Ok(object) };
        let count = self.spec().count(ty)?;
        let at = *first as usize;
        if at >= count {
            return Err(malformed("an index beyond its composite").into());
        }
        let mut parts = (0..count).map(|index| self.part(composite, index)).collect::<Step<Vec<_>>>()?;
        let inner = self.spec().part_of(ty, u64::from(*first))?.ty;
        parts[at] = self.inserted(&parts[at].clone(), inner, rest, object)?;
        Ok(Value::Composite(Rc::new(parts)))
    }

    fn select(&mut self, state: &mut State, instruction: &Instruction) -> Step<Value> {
        let condition = self.operand(state, instruction, 0)?;
        let yes = self.operand(state, instruction, 1)?;
        let no = self.operand(state, instruction, 2)?;
        if yes == no {
            return Ok(yes);
        }
        match condition {
            Value::Composite(conditions) => {
                let mut parts = Vec::new();
                for (index, condition) in conditions.iter().enumerate() {
                    if condition.is_lacking() {
                        parts.push(condition.clone());
                        continue;
                    }
                    let chosen = self.truth(state, condition, "a selection")?;
                    parts.push(self.part(if chosen { &yes } else { &no }, index)?);
                }
                Ok(Value::Composite(Rc::new(parts)))
            }
            Value::Opaque if !matches!(yes, Value::Pointer(_)) => Ok(Value::Opaque),
            lacking if lacking.is_lacking() => Ok(lacking),
            condition => Ok(if self.truth(state, &condition, "a selection")? { yes } else { no }),
        }
    }

    /// An instruction on numbers, or on the elements of vectors one by one.
    fn elementwise(&mut self, state: &mut State, instruction: &Instruction, op: Op) -> Step<Value> {
        let module = self.setting.module();
        let count = module.operands(instruction).len();
        if count == 0 || instruction.result == 0 || !is_computation(op) {
            return Err(unsupported(format!("Op{op:?}")).into());
        }
        let arguments =
            (0..count).map(|index| self.operand(state, instruction, index)).collect::<Step<Vec<_>>>()?;
        let of = self.type_of_operand(state, instruction, 0)?;
        let ty = instruction.ty;
        if op == Op::Bitcast && self.spec().size(of)? != self.spec().size(ty)? {
            return Err(malformed("a bitcast between types of different sizes").into());
        }
        if let Type::Vector { element, count } = module.ty(ty)? {
            if op == Op::Bitcast && self.spec().bits(of)? != self.spec().bits(ty)? {
                return Ok(Value::Composite(Rc::new(vec![Value::Opaque; *count as usize])));
            }
            let _ = element;
            let (from, bits) = (self.spec().bits(of)?, self.spec().bits(ty)?);
            let mut parts = Vec::with_capacity(*count as usize);
            for index in 0..*count as usize {
                let one = arguments
                    .iter()
                    .map(|argument| match argument {
                        Value::Known(_) | Value::Register(_) | Value::Truth(_) => Ok(argument.clone()),
                        vector => self.part(vector, index).map(|value| state.resolved(&value)),
                    })
                    .collect::<Step<Vec<_>>>()?;
                parts.push(self.scalar(state, instruction, op, &one, from, bits)?);
            }
            return Ok(Value::Composite(Rc::new(parts)));
        }
        if op == Op::Any || op == Op::All {
            let elements = self.vector(state, instruction, 0)?;
            if let Some(lacking) = elements.iter().find(|element| element.is_lacking()) {
                return Ok(lacking.clone());
            }
            let mut all = op == Op::All;
            for element in &elements {
                let holds = self.truth(state, element, "a truth")?;
                all = if op == Op::All { all && holds } else { all || holds };
            }
            return Ok(Value::Known(u64::from(all)));
        }
        if !self.spec().is_scalar(of)? || !self.spec().is_scalar(ty)? {
            return match op {
                Op::Bitcast => Ok(Value::Opaque),
                _ => Err(unsupported(format!("Op{op:?}")).into()),
            };
        }
        let (from, bits) = (self.spec().bits(of)?, self.spec().bits(ty)?);
        self.scalar(state, instruction, op, &arguments, from, bits)
    }

    fn scalar(
        &mut self,
        state: &mut State,
        instruction: &Instruction,
        op: Op,
        arguments: &[Value],
        from: u32,
        bits: u32,
    ) -> Step<Value> {
        let logical = matches!(
            op,
            Op::LogicalNot | Op::LogicalAnd | Op::LogicalOr | Op::LogicalEqual | Op::LogicalNotEqual
        );
        let arguments: Vec<Value> = arguments.iter().map(|argument| state.resolved(argument)).collect();
        if let Some(lacking) = arguments.iter().find(|argument| argument.is_lacking()) {
            let alone = |argument: &&Value| known(argument).is_some_and(|number| decides(op, number, bits));
            return Ok(arguments.iter().find(alone).unwrap_or(lacking).clone());
        }
        if logical && arguments.iter().any(|argument| matches!(argument, Value::Truth(_))) {
            return self.logical(state, op, &arguments);
        }
        if arguments.iter().any(|argument| matches!(argument, Value::Opaque)) {
            return Ok(Value::Opaque);
        }
        if arguments.iter().any(|argument| matches!(argument, Value::Pointer(_))) {
            return Err(unsupported(format!("Op{op:?} of a pointer")).into());
        }
        let mut numbers = Vec::with_capacity(arguments.len());
        for argument in &arguments {
            numbers.push(self.number(state, argument, "a computation")?);
        }
        let known: Option<Vec<u64>> = numbers
            .iter()
            .map(|number| match number {
                Number::Known(value) => Some(*value),
                Number::Register(_) => None,
            })
            .collect();
        if let Some(known) = known {
            return match fold(op, &known, from, bits) {
                Some(value) => Ok(Value::Known(value)),
                None if folds(op) => Ok(self.lacking(instruction)),
                None => Err(unsupported(format!("Op{op:?}")).into()),
            };
        }
        if let Some((relation, swapped, negated)) = relation(op) {
            let (left, right) = if swapped { (numbers[1], numbers[0]) } else { (numbers[0], numbers[1]) };
            let truth = Truth::Compare { relation, left, right, bits: from };
            return Ok(Value::Truth(Rc::new(if negated { Truth::Not(Rc::new(truth)) } else { truth })));
        }
        let whole = Number::Known(mask(bits));
        let second = numbers.get(1).copied();
        let simple = match (op, second) {
            (Op::IAdd, Some(right)) => Some((ArithmeticOperation::Add, numbers[0], right)),
            (Op::ISub, Some(right)) => Some((ArithmeticOperation::Subtract, numbers[0], right)),
            (Op::IMul, Some(right)) => Some((ArithmeticOperation::Multiply, numbers[0], right)),
            (Op::BitwiseAnd, Some(right)) => Some((ArithmeticOperation::And, numbers[0], right)),
            (Op::BitwiseOr, Some(right)) => Some((ArithmeticOperation::Or, numbers[0], right)),
            (Op::BitwiseXor, Some(right)) => Some((ArithmeticOperation::Xor, numbers[0], right)),
            (Op::SNegate, _) => Some((ArithmeticOperation::Subtract, Number::Known(0), numbers[0])),
            (Op::Not, _) => Some((ArithmeticOperation::Xor, numbers[0], whole)),
            (Op::ShiftLeftLogical, Some(Number::Known(shift))) if shift < 32 => {
                Some((ArithmeticOperation::Multiply, numbers[0], Number::Known(1 << shift)))
            }
            _ => None,
        };
        match simple {
            Some((operation, left, right)) if bits <= 32 && from <= 32 => {
                let result = self.compute(state, operation, left, right)?;
                match result {
                    Value::Register(register) if bits < 32 => {
                        self.compute(state, ArithmeticOperation::And, Number::Register(register), whole)
                    }
                    other => Ok(other),
                }
            }
            None if matches!(op, Op::UConvert | Op::Bitcast) && bits >= from => Ok(arguments[0].clone()),
            None if op == Op::UConvert && from <= 32 => {
                self.compute(state, ArithmeticOperation::And, numbers[0], whole)
            }
            _ => {
                // What registers cannot compute is done for each value they may hold.
                for argument in &arguments {
                    self.known(state, argument, &format!("Op{op:?}"))?;
                }
                Err(unsupported(format!("Op{op:?}")).into())
            }
        }
    }

    /// What an instruction gives that has no defined result here.
    pub(crate) fn lacking(&self, instruction: &Instruction) -> Value {
        Value::Undefined(Origin::Lacking(instruction.result, self.thread))
    }

    fn logical(&mut self, state: &mut State, op: Op, arguments: &[Value]) -> Step<Value> {
        let mut truths = Vec::new();
        for argument in arguments {
            truths.push(match argument {
                Value::Truth(truth) => truth.clone(),
                Value::Opaque => return Ok(Value::Opaque),
                other => Rc::new(Truth::Known(self.truth(state, other, "a truth")?)),
            });
        }
        let not = |truth: &Rc<Truth>| Rc::new(Truth::Not(truth.clone()));
        let truth = match (op, &truths[..]) {
            (Op::LogicalNot, [inner]) => Truth::Not(inner.clone()),
            (Op::LogicalAnd, [left, right]) => Truth::And(left.clone(), right.clone()),
            (Op::LogicalOr, [left, right]) => Truth::Not(Rc::new(Truth::And(not(left), not(right)))),
            (Op::LogicalEqual, [left, right]) => Truth::Same(left.clone(), right.clone()),
            (Op::LogicalNotEqual, [left, right]) => Truth::Same(left.clone(), not(right)),
            _ => return Err(malformed(format!("Op{op:?} with other operands")).into()),
        };
        Ok(state.resolved(&Value::Truth(Rc::new(truth))))
    }

    fn extended(&mut self, state: &mut State, instruction: &Instruction) -> Step<Value> {
        let module = self.setting.module();
        let operands = module.operands(instruction);
        let set = operands.first().and_then(|set| module.extended.get(set)).map_or("", String::as_str);
        if set.starts_with("NonSemantic.") || set.ends_with("DebugInfo.100") {
            return Ok(Value::Opaque);
        }
        let number = module.operand(instruction, 1)?;
        if set != "GLSL.std.450" {
            return Err(unsupported(format!("instruction {number} of `{set}`")).into());
        }
        let op = GlslStd450Op::from_u32(number)
            .ok_or_else(|| unsupported(format!("instruction {number} of GLSL.std.450")))?;
        let ty = instruction.ty;
        // What they leave where a pointer leads is of floats as well.
        if matches!(op, GlslStd450Op::Modf | GlslStd450Op::Frexp) {
            let pointer = self.pointer(state, instruction, 3)?;
            let way = Way { operands: MemoryOperands::default(), coherent: pointer.coherent };
            self.store(state, pointer, pointer.ty, &Value::Opaque, way)?;
            return Ok(Value::Opaque);
        }
        let integer = match module.ty(ty)? {
            Type::Vector { element, .. } => matches!(module.ty(*element)?, Type::Integer { .. }),
            other => matches!(other, Type::Integer { .. }),
        };
        if !integer {
            return Ok(Value::Opaque);
        }
        let bits = self.spec().bits(ty)?;
        let arguments =
            (2..operands.len()).map(|at| self.operand(state, instruction, at)).collect::<Step<Vec<_>>>()?;
        let count = match module.ty(ty)? {
            Type::Vector { count, .. } => Some(*count as usize),
            _ => None,
        };
        let mut results = Vec::new();
        for index in 0..count.unwrap_or(1) {
            let mut numbers = Vec::new();
            let (mut opaque, mut lacking) = (false, None);
            for argument in &arguments {
                let one = if count.is_some() { self.part(argument, index)? } else { argument.clone() };
                if one.is_lacking() {
                    lacking = Some(one);
                } else if matches!(state.resolved(&one), Value::Opaque) {
                    opaque = true;
                } else {
                    numbers.push(self.known(state, &one, &format!("{op:?}"))?);
                }
            }
            results.push(if let Some(lacking) = lacking {
                lacking
            } else if opaque {
                Value::Opaque
            } else {
                let folded = fold_extended(op, &numbers, bits, bits);
                Value::Known(folded.ok_or_else(|| unsupported(format!("{op:?}")))?)
            });
        }
        Ok(match count {
            Some(_) => Value::Composite(Rc::new(results)),
            None => results.pop().unwrap_or(Value::Opaque),
        })
    }
}

/// Instructions on numbers and truths.
fn is_computation(op: Op) -> bool {
    folds(op) || matches!(op, Op::Any | Op::All)
}

fn is_atomic(op: Op) -> bool {
    format!("{op:?}").starts_with("Atomic")
}

/// Operations of a subgroup: their results are not followed, and nothing is ordered by them.
fn is_group(op: Op) -> bool {
    format!("{op:?}").starts_with("GroupNonUniform")
}

/// Operations on floats: their results are not followed.
fn is_float(op: Op) -> bool {
    matches!(
        op,
        Op::FAdd
            | Op::FSub
            | Op::FMul
            | Op::FDiv
            | Op::FRem
            | Op::FMod
            | Op::FNegate
            | Op::FConvert
            | Op::QuantizeToF16
            | Op::ConvertFToS
            | Op::ConvertFToU
            | Op::ConvertSToF
            | Op::ConvertUToF
            | Op::Dot
            | Op::VectorTimesScalar
            | Op::MatrixTimesScalar
            | Op::VectorTimesMatrix
            | Op::MatrixTimesVector
            | Op::MatrixTimesMatrix
            | Op::OuterProduct
            | Op::Transpose
            | Op::IsNan
            | Op::IsInf
            | Op::FOrdEqual
            | Op::FUnordEqual
            | Op::FOrdNotEqual
            | Op::FUnordNotEqual
            | Op::FOrdLessThan
            | Op::FUnordLessThan
            | Op::FOrdGreaterThan
            | Op::FUnordGreaterThan
            | Op::FOrdLessThanEqual
            | Op::FUnordLessThanEqual
            | Op::FOrdGreaterThanEqual
            | Op::FUnordGreaterThanEqual
    )
}
