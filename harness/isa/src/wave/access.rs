//! Memory accesses of a wave: the bytes that every lane accesses.

use super::counters::{OutstandingOperation, operation_counters};
use super::{
    ADDRESS_BASE, CodeBuilder, HaltReason, operand_at, require_constant, scalar_registers_at, unsupported,
    vector_registers_at,
};
use crate::code::{Access, AccessPart, LDS_SPACE, MemoryUnit, WaveExpression, WaveStep, WaveValue};
use crate::facts;
use crate::family::Generation;
use crate::opcode::{AccessAction, AtomicOpcode, CacheInstruction, MemoryInstruction, MemoryPath};
use crate::question::{DescriptorTarget, MemorySpace, MemoryWord};
use crate::text::{MachineOperand, OperandModifiers, RegisterRange};

/// The elements that one lane accesses.
struct LaneElements {
    lane: usize,
    starts: Vec<(MemorySpace, u32)>,
}

struct AccessOperands {
    /// The destination of a load or returning atomic.
    destination: Option<RegisterRange>,
    /// The data of a store or atomic, element by element.
    data: Vec<RegisterRange>,
    compare: Option<RegisterRange>,
}

impl CodeBuilder<'_> {
    pub(super) fn execute_memory(&mut self, memory: MemoryInstruction) -> Result<(), HaltReason> {
        let instruction = self.instruction;
        if self.generation == Generation::Gfx940 {
            return Err(unsupported("the memory system of GFX90A and GFX94x is not modelled"));
        }
        if let Some(flag) =
            ["lds", "gds", "tfe", "lwe"].into_iter().find(|flag| instruction.modifiers.has_flag(flag))
        {
            return Err(unsupported(format!("modifier `{flag}`")));
        }
        match memory.path {
            MemoryPath::Scalar | MemoryPath::ScalarBuffer => self.execute_scalar_load(memory),
            MemoryPath::Buffer
            | MemoryPath::Texel
            | MemoryPath::Global
            | MemoryPath::Flat
            | MemoryPath::Image
            | MemoryPath::Lds => self.execute_vector_access(memory),
        }
    }

    pub(super) fn execute_cache(&mut self, cache: CacheInstruction) -> Result<(), HaltReason> {
        let instruction = self.instruction;
        let scope = match instruction.modifiers.value("scope") {
            None | Some("SCOPE_CU") => 0,
            Some("SCOPE_SE") => 1,
            Some("SCOPE_DEV") => 2,
            Some("SCOPE_SYS") => 3,
            Some(other) => return Err(unsupported(format!("scope:{other}"))),
        };
        self.code.nodes.push(WaveStep::Cache { line: instruction.line, cache, scope });
        Ok(())
    }

    /// Loads of descriptors are constants; other scalar loads use the scalar cache.
    fn execute_scalar_load(&mut self, memory: MemoryInstruction) -> Result<(), HaltReason> {
        let instruction = self.instruction;
        let destination = scalar_registers_at(instruction, 0)?;
        let base = scalar_registers_at(instruction, 1)?;
        let words = u16::from(memory.bytes / 4);
        if destination.count != words {
            return Err(unsupported("a destination of another size"));
        }
        let mut offset =
            instruction.modifiers.value_as_number("offset").ok_or_else(|| unsupported("offset"))?;
        match operand_at(instruction, 2)? {
            MachineOperand::Null => {}
            MachineOperand::Number(number) => offset += number,
            operand @ MachineOperand::Scalar(_) => {
                offset += i64::from(require_constant(self.scalar_operand(operand, 0)?)?);
            }
            other => return Err(unsupported(format!("operand {other:?}"))),
        }
        if let Some(MachineOperand::Number(extra_offset)) = instruction.operands.get(3) {
            offset += extra_offset;
        }
        let start = u32::try_from(offset).map_err(|_| unsupported("a negative offset"))?;
        // Destinations must not be in flight; this is checked before any change.
        for word in 0..words {
            self.state.read_scalar(destination.first + word)?;
        }
        let (space, start) = match (memory.path, self.state.read_scalar(base.first)?) {
            (MemoryPath::Scalar, WaveValue::DescriptorSetAddress) => {
                let values: Result<Vec<WaveValue>, HaltReason> = (0..words)
                    .map(|word| self.descriptor_word(start.saturating_add(4 * u32::from(word))))
                    .collect();
                let number = self.issue_operation(memory.path, true, None);
                for (word, value) in (0..words).zip(values?) {
                    self.set_pending_scalar(destination.first + word, value, number);
                }
                return Ok(());
            }
            (MemoryPath::Scalar, WaveValue::Constant(low)) => {
                let high = require_constant(self.state.read_scalar(base.first + 1)?)?;
                self.resolve_address(u64::from(low) | u64::from(high) << 32, i64::from(start))?
            }
            (MemoryPath::ScalarBuffer, _) => match self.descriptor_target(base)? {
                DescriptorTarget::Buffer(space) | DescriptorTarget::Texels(space) => (space, start),
                DescriptorTarget::Image { .. } => {
                    return Err(unsupported("an image's descriptor"));
                }
            },
            (_, value) => {
                require_constant(value)?;
                return Err(unsupported("an unknown address"));
            }
        };
        let mut parts = Vec::new();
        let mut values = Vec::new();
        for (place, word) in split_access(space, start, u32::from(memory.bytes))? {
            let slot = self.new_slot()?;
            parts.push(AccessPart {
                word: place,
                slot: Some(slot),
                data: [WaveValue::ZERO; 2],
                compare: [WaveValue::ZERO; 2],
            });
            values.extend(self.load_words(slot, place, false)?.into_iter().map(|value| (word, value)));
        }
        let skips = self.bypassed_caches(facts::AccessClass::Scalar, &instruction.modifiers);
        let access = self.push_access(Access {
            line: instruction.line,
            unit: MemoryUnit::Scalar,
            action: memory.action,
            bypassed: skips,
            waits_for_memory: true,
            parts,
        })?;
        let number = self.issue_operation(memory.path, true, Some(access));
        for (register, (_, value)) in (destination.first..).zip(values) {
            self.set_pending_scalar(register, value, number);
        }
        self.code.nodes.push(WaveStep::Access(access));
        Ok(())
    }

    fn execute_vector_access(&mut self, memory: MemoryInstruction) -> Result<(), HaltReason> {
        let instruction = self.instruction;
        let is_atomic = matches!(memory.action, AccessAction::Atomic(_));
        let returns_value = match memory.action {
            AccessAction::Load { .. } => true,
            AccessAction::Store => false,
            AccessAction::Atomic(_) => self.returns_old_value(memory.path),
        };
        let active = self.state.active_lanes()?;
        let (operands, lanes) = self.access_operands(memory, returns_value, &active)?;
        // Everything is read and checked before any change.
        let elements = if memory.pair_stride.is_some() { 2 } else { 1 };
        let words = u16::from(memory.bytes.div_ceil(4));
        let size = if memory.low_half { 4 } else { u32::from(memory.bytes) };
        let mut parts = Vec::new();
        let mut results: Vec<(u16, usize, WaveValue)> = Vec::new();
        let signed = matches!(memory.action, AccessAction::Load { signed: true });
        for LaneElements { lane, starts } in &lanes {
            for (element, (space, start)) in starts.iter().enumerate().take(elements) {
                for (place, first) in split_access(*space, *start, size)? {
                    let read_words = |builder: &mut Self,
                                      registers: Option<RegisterRange>|
                     -> Result<[WaveValue; 2], HaltReason> {
                        let Some(registers) = registers else { return Ok([WaveValue::ZERO; 2]) };
                        let mut word = |index: u16| {
                            builder.lane_operand(&MachineOperand::Vector(registers), first + index, *lane)
                        };
                        let high = if place.bytes == 8 { word(1)? } else { WaveValue::ZERO };
                        Ok([word(0)?, high])
                    };
                    let mut data = read_words(self, operands.data.get(element).copied())?;
                    for value in &data {
                        if let WaveValue::Undefined
                        | WaveValue::DescriptorSetAddress
                        | WaveValue::DescriptorWord { .. } = value
                        {
                            require_constant(*value)?;
                        }
                    }
                    if memory.high_half {
                        data[0] = self.compute_value(
                            crate::alu::AluOperation::HighHalf,
                            data[0],
                            WaveValue::ZERO,
                            WaveValue::ZERO,
                        )?;
                    }
                    if memory.low_half {
                        data[0] = self.compute_value(
                            crate::alu::AluOperation::LowHalf,
                            data[0],
                            WaveValue::ZERO,
                            WaveValue::ZERO,
                        )?;
                    }
                    let compare = read_words(self, operands.compare)?;
                    let slot = if returns_value { Some(self.new_slot()?) } else { None };
                    parts.push(AccessPart { word: place, slot, data, compare });
                    if let (Some(slot), Some(to)) = (slot, operands.destination) {
                        for (word, value) in (first..).zip(self.load_words(slot, place, signed)?) {
                            let register = to.first + element as u16 * words + word;
                            self.state.check_writable(register, *lane)?;
                            results.push((register, *lane, value));
                        }
                    }
                }
            }
        }
        if parts.len() > 64 {
            return Err(unsupported("more than 64 parts"));
        }
        let kind = if memory.action == AccessAction::Store {
            facts::AccessClass::Store
        } else {
            facts::AccessClass::Load
        };
        let skips = if is_atomic { [false; 3] } else { self.bypassed_caches(kind, &instruction.modifiers) };
        let is_lds = memory.path == MemoryPath::Lds;
        // For a store at compute-unit scope, the guarantee of a wait is unclear.
        let is_cu_scope_store = memory.action == AccessAction::Store
            && !is_lds
            && matches!(instruction.modifiers.value("scope"), None | Some("SCOPE_CU"))
            && self.facts.is_accepted("cu-scope-store-stays", self.generation, self.profile);
        let access = self.push_access(Access {
            line: instruction.line,
            unit: if is_lds { MemoryUnit::Lds } else { MemoryUnit::Vector },
            action: memory.action,
            bypassed: skips,
            waits_for_memory: !is_cu_scope_store,
            parts,
        })?;
        let number = self.issue_operation(memory.path, returns_value, Some(access));
        for (register, lane, value) in results {
            self.state.write_vector(register, lane, value)?;
            let index = usize::from(register) * self.state.lanes.len() + lane;
            if let Some(pending) = self.state.vector_pending.get_mut(index) {
                *pending = number;
            }
        }
        self.code.nodes.push(WaveStep::Access(access));
        Ok(())
    }

    /// Returns true if an atomic returns the old value.
    fn returns_old_value(&self, path: MemoryPath) -> bool {
        let instruction = self.instruction;
        if path == MemoryPath::Lds {
            return instruction.mnemonic.contains("_rtn");
        }
        if self.generation >= Generation::Gfx12 {
            return instruction.modifiers.value("th").is_some_and(|hint| hint.contains("RETURN"));
        }
        instruction.modifiers.has_flag("glc")
    }

    /// Returns operands and addresses, by path.
    fn access_operands(
        &mut self,
        memory: MemoryInstruction,
        returns: bool,
        active: &[usize],
    ) -> Result<(AccessOperands, Vec<LaneElements>), HaltReason> {
        let instruction = self.instruction;
        let is_atomic = matches!(memory.action, AccessAction::Atomic(_));
        let is_compare_exchange = memory.action == AccessAction::Atomic(AtomicOpcode::CompareSwap);
        let is_load = matches!(memory.action, AccessAction::Load { .. });
        // In a compare-exchange, the data precede the comparison value.
        let words = u16::from(memory.bytes.div_ceil(4));
        let split_compare = |registers: RegisterRange| {
            let second = RegisterRange { first: registers.first + words, count: words };
            (RegisterRange { first: registers.first, count: words }, is_compare_exchange.then_some(second))
        };
        match memory.path {
            MemoryPath::Buffer | MemoryPath::Texel | MemoryPath::Image => {
                let registers = vector_registers_at(instruction, 0)?;
                let (data, compare) = split_compare(registers);
                let operands = AccessOperands {
                    destination: returns.then_some(data),
                    data: if is_load { Vec::new() } else { vec![data] },
                    compare: if is_atomic { compare } else { None },
                };
                let starts = self.descriptor_addresses(memory, active)?;
                Ok((operands, starts))
            }
            MemoryPath::Global | MemoryPath::Flat => {
                let destination = if returns { Some(vector_registers_at(instruction, 0)?) } else { None };
                let first = usize::from(returns);
                let data = if is_load { None } else { Some(vector_registers_at(instruction, first + 1)?) };
                let base = match instruction.operands.get(first + if is_load { 1 } else { 2 }) {
                    None | Some(MachineOperand::Off | MachineOperand::Null) => None,
                    Some(MachineOperand::Scalar(registers)) => Some(*registers),
                    Some(other) => return Err(unsupported(format!("operand {other:?}"))),
                };
                let offset = offset_modifier(&instruction.modifiers)?;
                let mut lanes = Vec::new();
                // Without an active lane, the registers are not read.
                let base = base.filter(|_| !active.is_empty());
                let base = base.map(|base| self.state.read_mask(base.first, 2)).transpose()?;
                for lane in active {
                    let operand = operand_at(instruction, first)?;
                    let mut word = |index| require_constant(self.lane_operand(operand, index, *lane)?);
                    let address = match base {
                        Some(base) => base.wrapping_add(u64::from(word(0)?)),
                        None => u64::from(word(0)?) | u64::from(word(1)?) << 32,
                    };
                    lanes.push(LaneElements {
                        lane: *lane,
                        starts: vec![self.resolve_address(address, offset)?],
                    });
                }
                let (data, compare) = data.map(split_compare).unzip();
                Ok((
                    AccessOperands {
                        destination,
                        data: data.into_iter().collect(),
                        compare: compare.flatten(),
                    },
                    lanes,
                ))
            }
            MemoryPath::Lds => {
                let destination = if returns { Some(vector_registers_at(instruction, 0)?) } else { None };
                let first = usize::from(returns);
                let mut data = Vec::new();
                let mut compare = None;
                if is_compare_exchange {
                    let (a, b) = (
                        vector_registers_at(instruction, first + 1)?,
                        vector_registers_at(instruction, first + 2)?,
                    );
                    // GFX11 reversed the order.
                    let stored_first = instruction.mnemonic.starts_with("ds_cmpstore");
                    let (value, with) = if stored_first { (a, b) } else { (b, a) };
                    data.push(value);
                    compare = Some(with);
                } else if !is_load {
                    data.push(vector_registers_at(instruction, first + 1)?);
                    if memory.pair_stride.is_some() {
                        data.push(vector_registers_at(instruction, first + 2)?);
                    }
                }
                let offset_value = |key| {
                    let value = instruction
                        .modifiers
                        .value_as_number(key)
                        .and_then(|value| u32::try_from(value).ok());
                    value.ok_or_else(|| unsupported(format!("modifier `{key}`")))
                };
                let offsets = match memory.pair_stride {
                    None => vec![offset_value("offset")?],
                    Some(stride) => {
                        let step = u32::from(stride) * u32::from(memory.bytes);
                        vec![
                            offset_value("offset0")?.saturating_mul(step),
                            offset_value("offset1")?.saturating_mul(step),
                        ]
                    }
                };
                let mut lanes = Vec::new();
                for lane in active {
                    let address =
                        require_constant(self.lane_operand(operand_at(instruction, first)?, 0, *lane)?)?;
                    let starts =
                        offsets.iter().map(|offset| (LDS_SPACE, address.wrapping_add(*offset))).collect();
                    lanes.push(LaneElements { lane: *lane, starts });
                }
                Ok((AccessOperands { destination, data, compare }, lanes))
            }
            MemoryPath::Scalar | MemoryPath::ScalarBuffer => Err(unsupported("a scalar access")),
        }
    }

    /// Returns the places that lanes access through a descriptor.
    fn descriptor_addresses(
        &mut self,
        memory: MemoryInstruction,
        active: &[usize],
    ) -> Result<Vec<LaneElements>, HaltReason> {
        let instruction = self.instruction;
        let modifiers = &instruction.modifiers;
        let registers = scalar_registers_at(instruction, 2)?;
        if modifiers.has_flag("addr64") {
            return self.addr64_addresses(registers, active);
        }
        let target = self.descriptor_target(registers)?;
        let mut lanes = Vec::new();
        let (offen, idxen) = (modifiers.has_flag("offen"), modifiers.has_flag("idxen"));
        let coordinate = |lane: usize, index: u16| -> Result<u32, HaltReason> {
            let value = match operand_at(instruction, 1)? {
                MachineOperand::Vectors(list) => {
                    let register = list.get(usize::from(index)).copied();
                    let register = register.ok_or_else(|| unsupported("too few coordinates"))?;
                    self.state.read_vector(register, lane)?
                }
                // The printer prints the first of several registers if the dimension is unknown to it.
                MachineOperand::Vector(registers) => self.state.read_vector(registers.first + index, lane)?,
                other => return Err(unsupported(format!("operand {other:?}"))),
            };
            require_constant(value)
        };
        let immediate = offset_modifier(modifiers)?;
        for lane in active {
            let start = match (memory.path, target) {
                (MemoryPath::Image, DescriptorTarget::Image { space, row }) => {
                    let mask = modifiers.value("dmask");
                    let compare = memory.action == AccessAction::Atomic(AtomicOpcode::CompareSwap);
                    let words = if compare { "0x3" } else { "0x1" };
                    if mask.is_some_and(|mask| mask != words) {
                        return Err(unsupported(format!("dmask:{}", mask.unwrap_or_default())));
                    }
                    if modifiers.has_flag("a16") {
                        return Err(unsupported("modifier `a16`"));
                    }
                    let x = coordinate(*lane, 0)?;
                    let y = if row == 0 { 0 } else { coordinate(*lane, 1)? };
                    (space, y.wrapping_mul(row).wrapping_add(x).wrapping_mul(4))
                }
                (
                    MemoryPath::Buffer | MemoryPath::Texel,
                    DescriptorTarget::Buffer(space) | DescriptorTarget::Texels(space),
                ) => {
                    let scalar = match operand_at(instruction, 3)? {
                        MachineOperand::Null => 0,
                        operand => require_constant(self.scalar_operand(operand, 0)?)?,
                    };
                    let mut start = i64::from(scalar) + immediate;
                    if idxen {
                        // Texel buffers consist of words; a storage buffer's descriptor has no stride.
                        let stride = if matches!(target, DescriptorTarget::Texels(_)) { 4 } else { 0 };
                        start += i64::from(coordinate(*lane, 0)?) * stride;
                    }
                    if offen {
                        start += i64::from(coordinate(*lane, u16::from(idxen))?);
                    }
                    let start = u32::try_from(start).map_err(|_| unsupported("an offset past 32 bits"))?;
                    (space, start)
                }
                _ => return Err(unsupported("a descriptor of another kind")),
            };
            lanes.push(LaneElements { lane: *lane, starts: vec![start] });
        }
        Ok(lanes)
    }

    /// Returns the places that lanes access by a two-word address on GFX6.
    ///
    /// The address is added to the base of a descriptor that the shader builds (Southern Islands Series
    /// Instruction Set Architecture, 8.1.5).
    fn addr64_addresses(
        &mut self,
        registers: RegisterRange,
        active: &[usize],
    ) -> Result<Vec<LaneElements>, HaltReason> {
        let instruction = self.instruction;
        let base = self.state.read_mask(registers.first, 2)?;
        // 48 bits of address. A stride above them would add the lane index.
        if base >> 48 != 0 {
            return Err(unsupported("a descriptor with a stride"));
        }
        let offset = offset_modifier(&instruction.modifiers)?
            + i64::from(require_constant(self.scalar_operand(operand_at(instruction, 3)?, 0)?)?);
        let mut lanes = Vec::new();
        for lane in active {
            let mut word =
                |index| require_constant(self.lane_operand(operand_at(instruction, 1)?, index, *lane)?);
            let address = base.wrapping_add(u64::from(word(0)?) | u64::from(word(1)?) << 32);
            lanes.push(LaneElements { lane: *lane, starts: vec![self.resolve_address(address, offset)?] });
        }
        Ok(lanes)
    }

    /// Returns the memory of the descriptor in these registers.
    fn descriptor_target(&self, registers: RegisterRange) -> Result<DescriptorTarget, HaltReason> {
        let mut found = None;
        for index in 0..registers.count {
            match self.state.read_scalar(registers.first + index)? {
                WaveValue::DescriptorWord { offset, word }
                    if u16::from(word) == index && found.is_none_or(|o| o == offset) =>
                {
                    found = Some(offset);
                }
                _ => {
                    return Err(unsupported("registers that do not hold a descriptor"));
                }
            }
        }
        let resources = &self.launch.kernel.resources;
        let resource = found.and_then(|offset| resources.iter().find(|known| known.offset == offset));
        resource.map(|resource| resource.target).ok_or_else(|| unsupported("a descriptor outside the set"))
    }

    fn descriptor_word(&self, at: u32) -> Result<WaveValue, HaltReason> {
        let resources = self.launch.kernel.resources.iter();
        let resource = resources.filter(|known| known.offset <= at).max_by_key(|known| known.offset);
        match resource.map(|resource| (resource.offset, (at - resource.offset) / 4)) {
            Some((offset, word)) if word < 16 => Ok(WaveValue::DescriptorWord { offset, word: word as u8 }),
            _ => Err(unsupported("memory outside the descriptor set")),
        }
    }

    fn resolve_address(&self, address: u64, offset: i64) -> Result<(MemorySpace, u32), HaltReason> {
        let start = address
            .wrapping_add_signed(offset)
            .checked_sub(ADDRESS_BASE)
            .and_then(|start| u32::try_from(start).ok());
        match (self.launch.kernel.address_space, start) {
            (Some(space), Some(start)) => Ok((space, start)),
            _ => Err(unsupported("an address outside of the test's memory")),
        }
    }

    fn bypassed_caches(&mut self, kind: facts::AccessClass, modifiers: &OperandModifiers) -> [bool; 3] {
        let mut bypassed = [false; 3];
        for rule in self.facts.bit_rules(self.generation, kind, modifiers) {
            rule.skips.iter().for_each(|cache| bypassed[cache.index()] = true);
            if !self.code.applied_facts.contains(&rule.fact) {
                self.code.applied_facts.push(rule.fact.clone());
            }
        }
        bypassed
    }

    fn new_slot(&mut self) -> Result<u16, HaltReason> {
        let slot = self.code.slot_count;
        self.code.slot_count = slot.checked_add(1).ok_or_else(|| unsupported("more than 65535 loads"))?;
        Ok(slot)
    }

    /// Returns the value of a part of a load, word by word.
    fn load_words(
        &mut self,
        slot: u16,
        memory_word: MemoryWord,
        signed: bool,
    ) -> Result<Vec<WaveValue>, HaltReason> {
        let shift = ((memory_word.offset & 7) * 8) as u8;
        let word = |shift| WaveExpression::Load { slot, shift, bytes: memory_word.bytes.min(4), signed };
        let mut values = vec![self.add_expression(word(shift))?];
        if memory_word.bytes == 8 {
            values.push(self.add_expression(word(32))?);
        }
        Ok(values)
    }

    fn push_access(&mut self, access: Access) -> Result<u16, HaltReason> {
        let number =
            u16::try_from(self.code.accesses.len()).map_err(|_| unsupported("more than 65535 accesses"))?;
        self.code.accesses.push(access);
        Ok(number)
    }

    /// Registers an operation as outstanding.
    fn issue_operation(&mut self, path: MemoryPath, returns: bool, access: Option<u16>) -> u32 {
        let instruction = self.instruction;
        let (counters, out_of_order) = operation_counters(self.generation, path, returns);
        self.state.issued_operations += 1;
        let number = self.state.issued_operations;
        self.state.outstanding.push(OutstandingOperation {
            number,
            line: instruction.line,
            counters,
            out_of_order,
            access,
        });
        number
    }

    fn set_pending_scalar(&mut self, register: u16, value: WaveValue, number: u32) {
        if let (Some(slot), Some(pending)) = (
            self.state.scalar.get_mut(usize::from(register)),
            self.state.scalar_pending.get_mut(usize::from(register)),
        ) {
            (*slot, *pending) = (value, number);
        }
    }
}

/// Returns the bytes that `offset:` adds.
fn offset_modifier(modifiers: &OperandModifiers) -> Result<i64, HaltReason> {
    modifiers.value_as_number("offset").ok_or_else(|| unsupported("modifier `offset`"))
}

/// Splits an access into parts within 8 aligned bytes, with the index of their first word.
///
/// Accesses of more than 8 bytes are split into words.
fn split_access(space: MemorySpace, start: u32, bytes: u32) -> Result<Vec<(MemoryWord, u16)>, HaltReason> {
    if !start.is_multiple_of(bytes.min(4)) {
        return Err(unsupported("an access that is not aligned"));
    }
    let mut parts = Vec::new();
    let mut split_bytes = 0;
    while split_bytes < bytes {
        let offset = start.checked_add(split_bytes).ok_or_else(|| unsupported("an address past 32 bits"))?;
        let size = if offset.is_multiple_of(8) && bytes == 8 { 8 } else { (bytes - split_bytes).min(4) };
        parts.push((MemoryWord { space, offset, bytes: size as u8 }, (split_bytes / 4) as u16));
        split_bytes += size;
    }
    Ok(parts)
}
