//! Classification on the device: a kernel that resets memory for a dispatch, and one that counts its
//! outcomes.
//!
//! A [`RowTable`] numbers the expected rows of words in mixed radix, with one digit for each [`RowColumn`].
//! [`counting_kernel`] reads the words of every instance and counts its row. One last counter counts
//! everything else: a word that no column lists, poison, a thread that did not end, a loop that reached its
//! bound. So the counters of a dispatch sum to its instances, and no unexpected instance counts as an
//! outcome. If the last counter is nonzero, the host reads the memory itself.
//!
//! Both kernels have the push constants of the kernel whose memory they use, and a fixed number of workgroups
//! that iterate over all instances. [`crate::contract`] defines the layout. One more push constant is the salt
//! that the resetting kernel writes after the instances of the result and the location buffer, so that a count
//! in the memory of another submission is detected. Each of their workgroups leaves
//! its receipt ([`Parameters::receipt`]) after the counters, with the salts that it reads, so that a partial reset or a partial or repeated
//! count is detected. An invocation outside the grid (see [`crate::contract`]) only adds 1 to the word after
//! these receipts.

use rspirv::spirv::{BuiltIn, MemorySemantics, Op, Scope, StorageClass, Word};

use crate::contract::{
    Parameter, Parameters, WordArithmetic, WordOperation, receipt_hash, result_word, unit_index,
};
use crate::loops::LoopBuilder;
use crate::module::{AtomicOrder, FinishedModule, ModuleBuilder, Preamble};

/// The size of their push constants in bytes: the parameters and the salt.
pub const PUSH_CONSTANT_BYTES: u32 = Parameters::BYTES + 4;
/// The maximum number of rows in a table.
pub const MAX_ROWS: u32 = 1 << 14;
/// The maximum number of counters in workgroup memory: 8 KiB, half of the memory that every device has.
const MAX_WORKGROUP_COUNTERS: u32 = 2048;
/// The position of a word of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordSource {
    /// The result slot with this index.
    Slot(u32),
    /// A word of a storage in the location buffer, the low one first.
    Storage {
        /// Index of the storage.
        number: u32,
        /// Index of the word in its unit.
        word: u32,
    },
    /// The texel of a storage, copied from its image.
    Texel {
        /// Index of the storage.
        number: u32,
    },
}

/// A word of each instance that is part of its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowColumn {
    pub source: WordSource,
    /// The words with a digit, without duplicates, in their memory representation.
    pub words: Vec<u32>,
}

/// The rows to count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowTable {
    columns: Vec<RowColumn>,
    rows: u32,
}

impl RowTable {
    /// Creates a table; `None` if it would have more than [`MAX_ROWS`] rows, or a column lists no word.
    pub fn new(columns: Vec<RowColumn>) -> Option<RowTable> {
        let lengths = columns.iter().map(|column| u32::try_from(column.words.len()).unwrap_or(u32::MAX));
        let rows = lengths.fold(1u32, u32::saturating_mul);
        (1..=MAX_ROWS).contains(&rows).then_some(RowTable { columns, rows })
    }

    /// Returns the number of rows, which is also the index of the counter for everything else.
    pub fn row_count(&self) -> u32 {
        self.rows
    }

    /// Returns the number of counters: one per row and one for everything else.
    pub fn counter_count(&self) -> u32 {
        self.rows + 1
    }

    /// Appends the index in [`RowColumn::words`] of each column's word in a row to `digits`.
    pub fn append_digits(&self, row: u32, digits: &mut Vec<usize>) {
        let mut rest = row as usize;
        for column in &self.columns {
            let radix = column.words.len().max(1);
            digits.push(rest % radix);
            rest /= radix;
        }
    }

    /// Returns the columns, in the order of the digits from the lowest.
    pub fn columns(&self) -> &[RowColumn] {
        &self.columns
    }
}

/// The properties of program and device that both kernels depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedMemory {
    /// Instance slots of a workgroup of the program.
    pub lanes: u32,
    /// Result words of an instance.
    pub slots: u32,
    /// Words of a unit of location memory.
    pub storage_words: u32,
    /// The initial value of each storage, as bits.
    pub initial_values: Vec<u128>,
    /// Slots that contain [`Parameters::done`] once their thread has ended.
    pub done_slots: Vec<u32>,
    /// Use separate counters for each round of the dispatch, one round after another.
    pub by_round: bool,
    /// Invocations of a workgroup.
    pub workgroup_size: u32,
    /// Workgroups of every dispatch of these kernels.
    pub workgroups: u32,
    /// The word of the first receipt in the counter buffer. The receipts of the counting workgroups follow
    /// those of the resetting ones.
    pub first_receipt: u32,
    /// The device has `vulkanMemoryModelDeviceScope`.
    pub device_scope: bool,
}

impl CountedMemory {
    /// Returns the word of the counter buffer that counts invocations outside the grid, for both kernels: it
    /// follows all receipts.
    pub fn overflow_word(&self) -> u32 {
        self.first_receipt.saturating_add(self.workgroups.saturating_mul(2))
    }
}

/// The buffer of a binding of these kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferRole {
    Results,
    /// The counters, which the caller zeroes before each dispatch.
    Counters,
    Locations,
    /// The texels, copied from the image of the locations.
    Texels,
}

impl BufferRole {
    /// Returns true if the units of the buffer include those of a salt.
    fn has_salt(&self) -> bool {
        match self {
            BufferRole::Results | BufferRole::Locations | BufferRole::Texels => true,
            BufferRole::Counters => false,
        }
    }
}

/// A kernel of this module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassifierKernel {
    pub words: Vec<u32>,
    /// The buffer of each binding in set 0, which the kernel measures.
    pub bindings: Vec<BufferRole>,
    /// The bindings whose salts it reads, after the lengths of all.
    pub salted_buffers: Vec<BufferRole>,
    /// A hash of its module, which it contains as a constant.
    pub identity: u32,
}

/// Returns the kernel that fills the results of all instances with [`Parameters::poison`] and their locations
/// with initial values, and the word after the results and the locations of the instance after them with the salt.
pub fn reset_kernel(memory: &CountedMemory) -> ClassifierKernel {
    let mut code = ClassifierBuilder::new(
        memory,
        vec![BufferRole::Results, BufferRole::Locations, BufferRole::Counters],
    );
    code.emit_prologue(memory, memory.first_receipt);
    let poison = code.parameter(Parameter::Poison);
    let size = code.module.constant(memory.workgroup_size);
    let total = code.total;
    let (first, step) = code.instance_range(size);
    code.emit_loop(first, total, step, |code, instance| {
        for slot in 0..memory.slots {
            let pointer = code.result_pointer(slot, instance);
            code.module.store(pointer, poison);
        }
        for (number, bits) in (0..).zip(&memory.initial_values) {
            for word in 0..memory.storage_words.max(1) {
                // The remaining words of a unit are zero.
                let part = if word < 4 { (bits >> (32 * word)) as u32 } else { 0 };
                let part = code.module.constant(part);
                code.store_location(memory, (number, word), instance, part);
            }
        }
    });
    let [salting, salted] = [code.module.id(), code.module.id()];
    let zero = code.module.constant(0);
    let is_first = code.module.emit_bool(Op::IEqual, &[first, zero]);
    code.module.begin_if(is_first, salting, salted);
    let pointer = code.result_pointer(memory.slots, zero);
    code.module.store(pointer, code.salt);
    for number in (0..).zip(&memory.initial_values).map(|(number, _)| number) {
        for word in 0..memory.storage_words.max(1) {
            code.store_location(memory, (number, word), total, code.salt);
        }
    }
    code.module.continue_at(salted);
    code.finish()
}

/// Returns the kernel that adds the instances of each row of `table` to the counters.
pub fn counting_kernel(memory: &CountedMemory, table: &RowTable) -> ClassifierKernel {
    let has_column =
        |wanted: fn(&WordSource) -> bool| table.columns.iter().any(|column| wanted(&column.source));
    let mut bindings = vec![BufferRole::Results, BufferRole::Counters];
    if has_column(|source| matches!(source, WordSource::Storage { .. })) {
        bindings.push(BufferRole::Locations);
    }
    if has_column(|source| matches!(source, WordSource::Texel { .. })) {
        bindings.push(BufferRole::Texels);
    }
    let salted = bindings.iter().copied().filter(BufferRole::has_salt).collect();
    let mut code = ClassifierBuilder::new(memory, bindings);
    code.salted_buffers = salted;
    // A workgroup first sums its counts in workgroup memory, because all invocations hit the same few rows.
    let local = (!memory.by_round && table.counter_count() <= MAX_WORKGROUP_COUNTERS).then(|| {
        let array = code.module.type_array(code.module.u32, table.counter_count());
        code.module.global_variable(StorageClass::Workgroup, array, "counters of the workgroup")
    });
    code.emit_prologue(memory, memory.first_receipt.saturating_add(memory.workgroups));
    let [zero, one, size, counters] =
        [0, 1, memory.workgroup_size, table.counter_count()].map(|word| code.module.constant(word));
    // No counters are assigned to invocations outside the grid.
    let first_counter = code.module.emit_word(Op::Select, &[code.outside, counters, code.local_index]);
    if let Some(local) = local {
        code.emit_loop(first_counter, counters, size, |code, counter| {
            let pointer = code.counter_pointer(local, counter);
            let relaxed = code.relaxed_order(Scope::Workgroup);
            code.module.atomic_store(pointer, relaxed, zero);
        });
        code.emit_workgroup_barrier();
    }
    let total = code.total;
    let (first, step) = code.instance_range(size);
    code.emit_loop(first, total, step, |code, instance| {
        let row = code.emit_row_index(memory, table, instance);
        let pointer = match local {
            Some(local) => code.counter_pointer(local, row),
            None if memory.by_round => {
                let round = code.module.emit_word(Op::UDiv, &[instance, code.round_size]);
                let before = code.module.emit_word(Op::IMul, &[round, counters]);
                let index = code.module.emit_word(Op::IAdd, &[before, row]);
                code.buffer_pointer(BufferRole::Counters, index)
            }
            None => code.buffer_pointer(BufferRole::Counters, row),
        };
        code.atomic_add(pointer, one, if local.is_some() { Scope::Workgroup } else { Scope::Device });
    });
    if let Some(local) = local {
        code.emit_workgroup_barrier();
        code.emit_loop(first_counter, counters, size, |code, counter| {
            let pointer = code.counter_pointer(local, counter);
            let relaxed = code.relaxed_order(Scope::Workgroup);
            let sum = code.module.atomic_load(pointer, relaxed);
            let [some, rest] = [code.module.id(), code.module.id()];
            let any = code.module.emit_bool(Op::INotEqual, &[sum, zero]);
            code.module.begin_if(any, some, rest);
            let pointer = code.buffer_pointer(BufferRole::Counters, counter);
            code.atomic_add(pointer, sum, Scope::Device);
            code.module.continue_at(rest);
        });
    }
    code.finish()
}

/// A kernel under construction.
struct ClassifierBuilder {
    module: ModuleBuilder,
    bindings: Vec<BufferRole>,
    buffers: Vec<Word>,
    block: Word,
    inputs: [Word; 2],
    lanes: u32,
    workgroup_size: u32,
    workgroups: u32,
    /// The word of the counter buffer that counts invocations outside the grid.
    overflow_word: u32,
    device_scope: Scope,
    parameters: Vec<(Parameter, Word)>,
    /// As [`ClassifierKernel::salted_buffers`].
    salted_buffers: Vec<BufferRole>,
    /// The salt of the push constants.
    salt: Word,
    /// Index of the invocation in its workgroup.
    local_index: Word,
    workgroup: Word,
    /// True if the invocation is outside the grid.
    outside: Word,
    round_size: Word,
    /// Instances of the dispatch.
    total: Word,
}

impl WordArithmetic for ClassifierBuilder {
    type Word = Word;

    fn constant(&mut self, value: u32) -> Word {
        self.module.constant(value)
    }

    /// Its first use must be in the first block.
    fn parameter(&mut self, parameter: Parameter) -> Word {
        if let Some((_, known)) = self.parameters.iter().find(|(known, _)| *known == parameter) {
            return *known;
        }
        let loaded = self.module.push_constant(self.block, parameter as u32);
        self.parameters.push((parameter, loaded));
        loaded
    }

    fn apply(&mut self, operation: WordOperation, left: Word, right: Word) -> Word {
        self.module.emit_word(operation.opcode(), &[left, right])
    }
}

impl ClassifierBuilder {
    fn new(memory: &CountedMemory, bindings: Vec<BufferRole>) -> ClassifierBuilder {
        let mut module = ModuleBuilder::new(Preamble::vulkan(memory.device_scope));
        let words = module.type_array_block(module.u32, 4, None);
        let buffers = (0..)
            .zip(&bindings)
            .map(|(number, shown)| {
                let name = match shown {
                    BufferRole::Results => "results",
                    BufferRole::Counters => "counters",
                    BufferRole::Locations => "locations",
                    BufferRole::Texels => "texels",
                };
                module.bound_variable(StorageClass::StorageBuffer, words, number, name)
            })
            .collect();
        let block = module.push_constants(PUSH_CONSTANT_BYTES / 4, 0);
        let inputs = [
            module.built_in_word(BuiltIn::LocalInvocationIndex),
            module.built_in_vector(BuiltIn::WorkgroupId),
        ];
        ClassifierBuilder {
            module,
            bindings,
            buffers,
            block,
            inputs,
            lanes: memory.lanes,
            workgroup_size: memory.workgroup_size,
            workgroups: memory.workgroups,
            overflow_word: memory.overflow_word(),
            device_scope: if memory.device_scope { Scope::Device } else { Scope::QueueFamily },
            parameters: Vec::new(),
            salted_buffers: Vec::new(),
            salt: 0,
            local_index: 0,
            workgroup: 0,
            outside: 0,
            round_size: 0,
            total: 0,
        }
    }

    /// Begins the function with common values and the receipts of the workgroups, which start at this word of
    /// the counters.
    fn emit_prologue(&mut self, memory: &CountedMemory, first_receipt: u32) {
        let entry = self.module.id();
        self.module.begin_block(entry);
        let [own, workgroup] = self.inputs;
        self.local_index = self.module.emit_word(Op::Load, &[own]);
        let [workgroup, y, z] = self.module.load_components(workgroup);
        self.workgroup = workgroup;
        self.outside = self.emit_is_outside_grid([y, z]);
        let (groups, rounds) = (self.parameter(Parameter::Groups), self.parameter(Parameter::Rounds));
        let lanes = self.module.constant(self.lanes);
        self.round_size = self.module.emit_word(Op::IMul, &[groups, lanes]);
        self.total = self.module.emit_word(Op::IMul, &[self.round_size, rounds]);
        // The first block dominates everything.
        self.salt = self.module.push_constant(self.block, Parameters::WORDS);
        for parameter in Parameter::ALL {
            self.parameter(parameter);
        }
        let buffers = self.buffers.clone();
        let mut memory_words: Vec<Word> =
            buffers.into_iter().map(|buffer| self.module.array_length(buffer)).collect();
        let [first, zero, one] = [first_receipt, 0, 1].map(|word| self.module.constant(word));
        let index = self.module.emit_word(Op::IAdd, &[first, self.workgroup]);
        let pointer = self.buffer_pointer(BufferRole::Counters, index);
        let receipt_index = self.module.emit_word(Op::Select, &[self.outside, one, self.local_index]);
        let writes_receipt = self.module.emit_bool(Op::IEqual, &[receipt_index, zero]);
        let [signing, signed] = [self.module.id(), self.module.id()];
        self.module.begin_if(writes_receipt, signing, signed);
        for role in self.salted_buffers.clone() {
            let pointer = match role {
                BufferRole::Results => self.result_pointer(memory.slots, zero),
                BufferRole::Counters | BufferRole::Locations | BufferRole::Texels => {
                    let index = self.location_word_index(memory, (0, 0), self.total);
                    self.buffer_pointer(role, index)
                }
            };
            memory_words.push(self.module.emit_word(Op::Load, &[pointer]));
        }
        let identity = self.module.identity_constant();
        let receipt = receipt_hash(self, identity, &memory_words);
        let relaxed = self.relaxed_order(Scope::Device);
        let before = self.module.atomic_load(pointer, relaxed);
        let sum = self.module.emit_word(Op::IAdd, &[before, receipt]);
        self.module.atomic_store(pointer, relaxed, sum);
        self.module.continue_at(signed);
        let [counting, counted] = [self.module.id(), self.module.id()];
        self.module.begin_if(self.outside, counting, counted);
        let overflow = self.module.constant(self.overflow_word);
        let pointer = self.buffer_pointer(BufferRole::Counters, overflow);
        self.atomic_add(pointer, one, Scope::Device);
        self.module.continue_at(counted);
    }

    /// Emits whether the invocation is outside the grid; `others` are the indexes of its workgroup in y
    /// and z.
    fn emit_is_outside_grid(&mut self, others: [Word; 2]) -> Word {
        let [workgroups, size, zero] =
            [self.workgroups, self.workgroup_size, 0].map(|word| self.module.constant(word));
        let others = self.module.emit_word(Op::BitwiseOr, &others);
        let conditions = [
            self.module.emit_bool(Op::UGreaterThanEqual, &[self.workgroup, workgroups]),
            self.module.emit_bool(Op::UGreaterThanEqual, &[self.local_index, size]),
            self.module.emit_bool(Op::INotEqual, &[others, zero]),
        ];
        let [surplus, past_end, other_axis] = conditions;
        let either = self.module.emit_bool(Op::LogicalOr, &[surplus, past_end]);
        self.module.emit_bool(Op::LogicalOr, &[either, other_axis])
    }

    /// Returns the first instance of an invocation, and the distance between its instances.
    fn instance_range(&mut self, size: Word) -> (Word, Word) {
        let before = self.module.emit_word(Op::IMul, &[self.workgroup, size]);
        let first = self.module.emit_word(Op::IAdd, &[before, self.local_index]);
        let first = self.module.emit_word(Op::Select, &[self.outside, self.total, first]);
        (first, self.module.constant(self.workgroup_size.saturating_mul(self.workgroups)))
    }

    /// Emits a loop over the numbers from `first` up to `end` with step `step`.
    fn emit_loop(
        &mut self,
        first: Word,
        end: Word,
        step: Word,
        body_of: impl FnOnce(&mut ClassifierBuilder, Word),
    ) {
        let mut instance_loop = LoopBuilder::new(&mut self.module);
        let next = self.module.id();
        let number = self.module.id();
        instance_loop.carry_counter_as(number, next, first, step);
        let before = self.module.current_block();
        instance_loop.enter(&mut self.module, before);
        let more = self.module.emit_bool(Op::ULessThan, &[number, end]);
        instance_loop.begin_body_if(&mut self.module, more);
        body_of(self, number);
        instance_loop.end_body(&mut self.module);
    }

    /// Returns the index of an instance's row, or that of the counter for everything else.
    fn emit_row_index(&mut self, memory: &CountedMemory, table: &RowTable, instance: Word) -> Word {
        let [zero, rows] = [0, table.rows].map(|word| self.module.constant(word));
        // Each word without a digit adds the number of all rows, so that the sum is outside of the table.
        let mut sum = zero;
        let mut weight = 1;
        for column in &table.columns {
            let word = self.load_source(column.source, memory, instance);
            let digit = self.emit_digit(&column.words, weight, word, rows);
            sum = self.module.emit_word(Op::IAdd, &[sum, digit]);
            weight *= column.words.len() as u32;
        }
        for slot in 0..memory.slots {
            let listed = |column: &RowColumn| column.source == WordSource::Slot(slot);
            let is_done = memory.done_slots.contains(&slot);
            if table.columns.iter().any(listed) && !is_done {
                continue;
            }
            let word = self.load_source(WordSource::Slot(slot), memory, instance);
            let known = self.parameter(if is_done { Parameter::Done } else { Parameter::Poison });
            let equal = self.module.emit_bool(Op::IEqual, &[word, known]);
            let [equal_adds, other_adds] = if is_done { [zero, rows] } else { [rows, zero] };
            let added = self.module.emit_word(Op::Select, &[equal, equal_adds, other_adds]);
            sum = self.module.emit_word(Op::IAdd, &[sum, added]);
        }
        let inside = self.module.emit_bool(Op::ULessThan, &[sum, rows]);
        self.module.emit_word(Op::Select, &[inside, sum, rows])
    }

    /// Returns the contribution of a word to the index of its row.
    fn emit_digit(&mut self, words: &[u32], weight: u32, word: Word, unknown: Word) -> Word {
        if words.iter().copied().eq(0..words.len() as u32) {
            let [count, weight] = [words.len() as u32, weight].map(|word| self.module.constant(word));
            let known = self.module.emit_bool(Op::ULessThan, &[word, count]);
            let digit = self.module.emit_word(Op::IMul, &[word, weight]);
            return self.module.emit_word(Op::Select, &[known, digit, unknown]);
        }
        let mut digit = unknown;
        for (number, known) in (0..).zip(words) {
            let [known, added] = [*known, number * weight].map(|word| self.module.constant(word));
            let equal = self.module.emit_bool(Op::IEqual, &[word, known]);
            digit = self.module.emit_word(Op::Select, &[equal, added, digit]);
        }
        digit
    }

    fn load_source(&mut self, source: WordSource, memory: &CountedMemory, instance: Word) -> Word {
        let pointer = match source {
            WordSource::Slot(slot) => self.result_pointer(slot, instance),
            WordSource::Storage { number, word } => {
                let index = self.location_word_index(memory, (number, word), instance);
                self.buffer_pointer(BufferRole::Locations, index)
            }
            WordSource::Texel { number } => {
                let index = self.location_word_index(memory, (number, 0), instance);
                self.buffer_pointer(BufferRole::Texels, index)
            }
        };
        self.module.emit_word(Op::Load, &[pointer])
    }

    /// Returns the index of a storage's word in the location buffer.
    fn location_word_index(
        &mut self,
        memory: &CountedMemory,
        (number, word): (u32, u32),
        instance: Word,
    ) -> Word {
        let unit = self.unit_index(number, instance);
        let [words, word] = [memory.storage_words.max(1), word].map(|word| self.module.constant(word));
        let first = self.module.emit_word(Op::IMul, &[unit, words]);
        self.module.emit_word(Op::IAdd, &[first, word])
    }

    /// Stores a word of a storage in the location buffer.
    fn store_location(&mut self, memory: &CountedMemory, place: (u32, u32), instance: Word, value: Word) {
        let index = self.location_word_index(memory, place, instance);
        let pointer = self.buffer_pointer(BufferRole::Locations, index);
        self.module.store(pointer, value);
    }

    /// Returns the index of a storage's unit.
    fn unit_index(&mut self, number: u32, instance: Word) -> Word {
        let number = self.module.constant(number);
        let stride = self.parameter(Parameter::Stride);
        let first = self.multiply(instance, stride);
        unit_index(self, first, number)
    }

    fn result_pointer(&mut self, slot: u32, instance: Word) -> Word {
        let slot = self.module.constant(slot);
        let index = result_word(self, slot, self.total, instance);
        self.buffer_pointer(BufferRole::Results, index)
    }

    /// Returns a pointer to a word of a bound buffer.
    fn buffer_pointer(&mut self, role: BufferRole, index: Word) -> Word {
        let bound = self.bindings.iter().zip(&self.buffers).find(|(known, _)| **known == role);
        let buffer = bound.map_or(0, |(_, buffer)| *buffer);
        self.module.word_pointer(buffer, index)
    }

    fn counter_pointer(&mut self, counters: Word, index: Word) -> Word {
        let ty = self.module.type_pointer(StorageClass::Workgroup, self.module.u32);
        self.module.emit_on_ids(Op::AccessChain, ty, &[counters, index])
    }

    /// Returns scope and semantics of a relaxed atomic.
    fn relaxed_order(&mut self, scope: Scope) -> AtomicOrder {
        let scope = if scope == Scope::Device { self.device_scope } else { scope };
        AtomicOrder {
            scope: self.module.constant(scope as u32),
            semantics: self.module.constant(MemorySemantics::RELAXED.bits()),
        }
    }

    fn atomic_add(&mut self, pointer: Word, value: Word, scope: Scope) {
        let relaxed = self.relaxed_order(scope);
        self.module.atomic_add(pointer, relaxed, value);
    }

    /// Emits a control barrier of the workgroup that orders atomics on its counters.
    fn emit_workgroup_barrier(&mut self) {
        let scope = self.module.constant(Scope::Workgroup as u32);
        let semantics = MemorySemantics::ACQUIRE_RELEASE | MemorySemantics::WORKGROUP_MEMORY;
        let semantics = self.module.constant(semantics.bits());
        self.module.control_barrier(Op::ControlBarrier, scope, scope, semantics);
    }

    fn finish(mut self) -> ClassifierKernel {
        self.module.emit_void(Op::Return, []);
        let FinishedModule { words, identity, .. } = self.module.finish(self.workgroup_size);
        ClassifierKernel { words, bindings: self.bindings, salted_buffers: self.salted_buffers, identity }
    }
}
