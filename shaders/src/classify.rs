//! Classification on the device: a kernel that makes memory ready for a dispatch, and one that counts its outcomes.
//!
//! A [`RowTable`] numbers the rows of words that instances are expected to show: one digit for each [`RowColumn`], in mixed
//! radix. [`count`] reads the words of every instance and adds 1 to the counter of its row; whatever is no row of the
//! table (a word that no column lists, poison, a thread that did not end, a loop that was given up) is counted by the one
//! counter behind the rows. So the counters of a dispatch add up to its instances, and nothing is folded into an outcome:
//! who finds the last counter above zero reads the memory itself.
//!
//! Both kernels take the push constants of the kernel whose memory they see, and go over all instances with a number of
//! workgroups that does not change. Where things lie is said in [`crate::contract`]. Each of their workgroups leaves its receipt
//! ([`Parameters::receipt`]) behind the counters, as those that play do: what is not made ready is not what the test asks, and what is
//! not counted, or twice, is no count.

use rspirv::dr::Operand;
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, LoopControl, MemoryModel, MemorySemantics, Op, Scope, StorageClass,
    Word,
};

use crate::contract::{Arithmetic, Operation, Parameter, Parameters, receipt, result_word, unit};
use crate::loops::Loop;
use crate::module::{Module, Preamble};

/// Rows of a table at most.
pub const MAX_ROWS: u32 = 1 << 14;
/// Counters that a workgroup keeps for itself at most: 8 KiB, half of what every device has.
const MAX_LOCAL: u32 = 2048;
/// Where a word of an instance lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordSource {
    /// The result slot of this number.
    Slot(u32),
    /// A word of a storage in the location buffer, the low one first.
    Storage {
        /// Number of the storage.
        number: u32,
        /// Number of the word in its unit.
        word: u32,
    },
    /// The texel of a storage, as it was copied from its image.
    Texel {
        /// Number of the storage.
        number: u32,
    },
}

/// A word of each instance that belongs to its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowColumn {
    /// Where it lies.
    pub source: WordSource,
    /// The words that have a digit, each once: as they lie in memory.
    pub words: Vec<u32>,
}

/// The rows that are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowTable {
    columns: Vec<RowColumn>,
    rows: u32,
}

impl RowTable {
    /// A table over `columns`; `None` where it would have more than [`MAX_ROWS`] rows, or a column lists no word.
    pub fn new(columns: Vec<RowColumn>) -> Option<RowTable> {
        let lengths = columns.iter().map(|column| u32::try_from(column.words.len()).unwrap_or(u32::MAX));
        let rows = lengths.fold(1u32, u32::saturating_mul);
        (1..=MAX_ROWS).contains(&rows).then_some(RowTable { columns, rows })
    }

    /// How many rows there are. The counter of this number is that of everything else.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Counters of a table: its rows, and everything else.
    pub fn counters(&self) -> u32 {
        self.rows + 1
    }

    /// Appends to `words` the place in [`RowColumn::words`] of each column's word in a row.
    pub fn digits(&self, row: u32, digits: &mut Vec<usize>) {
        let mut rest = row as usize;
        for column in &self.columns {
            let radix = column.words.len().max(1);
            digits.push(rest % radix);
            rest /= radix;
        }
    }

    /// The columns, in the order of the digits from the lowest.
    pub fn columns(&self) -> &[RowColumn] {
        &self.columns
    }
}

/// What both kernels need to know of the memory of a program, and of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedMemory {
    /// Slots of a workgroup of the program.
    pub lanes: u32,
    /// Result words of an instance.
    pub slots: u32,
    /// Words of a unit of location memory.
    pub storage_words: u32,
    /// The initial contents of each storage, as bits.
    pub initial: Vec<u128>,
    /// Slots that hold [`Parameters::done`] once their thread has ended.
    pub done: Vec<u32>,
    /// Counters for each round of the dispatch, one round after another, and not for all together.
    pub by_round: bool,
    /// Invocations of a workgroup.
    pub workgroup_size: u32,
    /// Workgroups of every dispatch of these kernels.
    pub workgroups: u32,
    /// The word of the counter buffer that the first receipt has: that of the first workgroup that makes memory ready. Those of the
    /// workgroups that count come behind those of all that make ready.
    pub first_receipt: u32,
    /// The device has `vulkanMemoryModelDeviceScope`.
    pub device_scope: bool,
}

/// What a binding of these kernels shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The result buffer.
    Results,
    /// The counters, which the caller zeroes before each dispatch.
    Counters,
    /// The location buffer.
    Locations,
    /// The texels that were copied from the image of the locations.
    Texels,
}

/// A kernel of this module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Helper {
    /// SPIR-V words.
    pub words: Vec<u32>,
    /// What stands behind each binding of set 0.
    pub bindings: Vec<Shown>,
}

/// The kernel that fills the results of all instances with [`Parameters::poison`] and their locations with what they hold
/// at first.
pub fn reset(memory: &CountedMemory) -> Helper {
    let mut code = Code::new(memory, vec![Shown::Results, Shown::Locations, Shown::Counters]);
    code.begin(memory.first_receipt);
    let poison = code.parameter(Parameter::Poison);
    for parameter in [Parameter::Stride, Parameter::Spacing] {
        code.parameter(parameter);
    }
    let [words, size] =
        [memory.storage_words.max(1), memory.workgroup_size].map(|word| code.module.constant(word));
    let total = code.total;
    let (first, step) = code.share(size);
    code.each(first, total, step, |code, instance| {
        for slot in 0..memory.slots {
            let pointer = code.result(slot, instance);
            code.module.effect(Op::Store, [pointer, poison].map(Operand::IdRef));
        }
        for (number, bits) in (0..).zip(&memory.initial) {
            let unit = code.unit(number, instance);
            let first = code.module.word(Op::IMul, &[unit, words]);
            for word in 0..memory.storage_words.max(1) {
                // What a unit has besides the value is zero.
                let part = if word < 4 { (bits >> (32 * word)) as u32 } else { 0 };
                let (part, word) = (code.module.constant(part), code.module.constant(word));
                let index = code.module.word(Op::IAdd, &[first, word]);
                let pointer = code.element(Shown::Locations, index);
                code.module.effect(Op::Store, [pointer, part].map(Operand::IdRef));
            }
        }
    });
    code.finish()
}

/// The kernel that counts: it adds to the counters how many instances show each row of `table`.
pub fn count(memory: &CountedMemory, table: &RowTable) -> Helper {
    let sees = |wanted: fn(&WordSource) -> bool| table.columns.iter().any(|column| wanted(&column.source));
    let mut bindings = vec![Shown::Results, Shown::Counters];
    if sees(|source| matches!(source, WordSource::Storage { .. })) {
        bindings.push(Shown::Locations);
    }
    if sees(|source| matches!(source, WordSource::Texel { .. })) {
        bindings.push(Shown::Texels);
    }
    let mut code = Code::new(memory, bindings);
    // A workgroup adds up for itself first: few rows are hit by all.
    let local = (!memory.by_round && table.counters() <= MAX_LOCAL).then(|| {
        let array = code.module.array(code.module.u32, table.counters());
        code.module.global(StorageClass::Workgroup, array, "counters of the workgroup")
    });
    code.begin(memory.first_receipt.saturating_add(memory.workgroups));
    for parameter in [Parameter::Poison, Parameter::Done, Parameter::Stride, Parameter::Spacing] {
        code.parameter(parameter);
    }
    let [zero, one, size, counters] =
        [0, 1, memory.workgroup_size, table.counters()].map(|word| code.module.constant(word));
    let own = code.own;
    if let Some(local) = local {
        code.each(own, counters, size, |code, counter| {
            let pointer = code.local(local, counter);
            code.atomic_store(pointer, zero, Scope::Workgroup);
        });
        code.meet();
    }
    let total = code.total;
    let (first, step) = code.share(size);
    code.each(first, total, step, |code, instance| {
        let row = code.row(memory, table, instance);
        let pointer = match local {
            Some(local) => code.local(local, row),
            None if memory.by_round => {
                let round = code.module.word(Op::UDiv, &[instance, code.in_round]);
                let before = code.module.word(Op::IMul, &[round, counters]);
                let index = code.module.word(Op::IAdd, &[before, row]);
                code.element(Shown::Counters, index)
            }
            None => code.element(Shown::Counters, row),
        };
        code.atomic_add(pointer, one, if local.is_some() { Scope::Workgroup } else { Scope::Device });
    });
    if let Some(local) = local {
        code.meet();
        code.each(own, counters, size, |code, counter| {
            let pointer = code.local(local, counter);
            let sum = code.atomic_load(pointer, Scope::Workgroup);
            let [some, rest] = [code.module.id(), code.module.id()];
            let any = code.module.truth(Op::INotEqual, &[sum, zero]);
            code.module.selection_merge(rest);
            code.module.branch_if(any, some, rest);
            code.module.begin(some);
            let pointer = code.element(Shown::Counters, counter);
            code.atomic_add(pointer, sum, Scope::Device);
            code.module.branch(rest);
            code.module.begin(rest);
        });
    }
    code.finish()
}

/// A kernel under construction.
struct Code {
    module: Module,
    bindings: Vec<Shown>,
    buffers: Vec<Word>,
    block: Word,
    inputs: [Word; 2],
    lanes: u32,
    workgroup_size: u32,
    workgroups: u32,
    device: Scope,
    parameters: Vec<(Parameter, Word)>,
    /// Number of the invocation in its workgroup.
    own: Word,
    workgroup: Word,
    /// Instances of a round.
    in_round: Word,
    /// Instances of the dispatch.
    total: Word,
}

impl Arithmetic for Code {
    type Word = Word;

    fn number(&mut self, value: u32) -> Word {
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

    fn apply(&mut self, operation: Operation, left: Word, right: Word) -> Word {
        self.module.word(operation.op(), &[left, right])
    }
}

impl Code {
    fn new(memory: &CountedMemory, bindings: Vec<Shown>) -> Code {
        let mut capabilities = vec![Capability::Shader, Capability::VulkanMemoryModel];
        if memory.device_scope {
            capabilities.push(Capability::VulkanMemoryModelDeviceScope);
        }
        let mut module = Module::new(Preamble {
            version: (1, 5),
            capabilities,
            extensions: Vec::new(),
            addressing: AddressingModel::Logical,
            model: MemoryModel::Vulkan,
            loops: LoopControl::NONE,
        });
        let words = module.block_of(module.u32, 4, None);
        let buffers = (0..)
            .zip(&bindings)
            .map(|(number, shown)| {
                let name = match shown {
                    Shown::Results => "results",
                    Shown::Counters => "counters",
                    Shown::Locations => "locations",
                    Shown::Texels => "texels",
                };
                module.bound(StorageClass::StorageBuffer, words, number, name)
            })
            .collect();
        let block = module.push_constants(Parameters::WORDS, 0);
        let inputs = [
            module.built_in_word(BuiltIn::LocalInvocationIndex),
            module.built_in_vector(BuiltIn::WorkgroupId),
        ];
        Code {
            module,
            bindings,
            buffers,
            block,
            inputs,
            lanes: memory.lanes,
            workgroup_size: memory.workgroup_size,
            workgroups: memory.workgroups,
            device: if memory.device_scope { Scope::Device } else { Scope::QueueFamily },
            parameters: Vec::new(),
            own: 0,
            workgroup: 0,
            in_round: 0,
            total: 0,
        }
    }

    /// Begins with what all of the code needs, and with the receipts of the workgroups, from this word of the counters on.
    fn begin(&mut self, first_receipt: u32) {
        let entry = self.module.id();
        self.module.begin(entry);
        let [own, workgroup] = self.inputs;
        self.own = self.module.word(Op::Load, &[own]);
        self.workgroup = self.module.load_x(workgroup);
        let (groups, rounds) = (self.parameter(Parameter::Groups), self.parameter(Parameter::Rounds));
        let lanes = self.module.constant(self.lanes);
        self.in_round = self.module.word(Op::IMul, &[groups, lanes]);
        self.total = self.module.word(Op::IMul, &[self.in_round, rounds]);
        let receipt = receipt(self);
        let [first, zero] = [first_receipt, 0].map(|word| self.module.constant(word));
        let index = self.module.word(Op::IAdd, &[first, self.workgroup]);
        let pointer = self.element(Shown::Counters, index);
        let signs = self.module.truth(Op::IEqual, &[self.own, zero]);
        let [signing, signed] = [self.module.id(), self.module.id()];
        self.module.selection_merge(signed);
        self.module.branch_if(signs, signing, signed);
        self.module.begin(signing);
        let before = self.atomic_load(pointer, Scope::Device);
        let sum = self.module.word(Op::IAdd, &[before, receipt]);
        self.atomic_store(pointer, sum, Scope::Device);
        self.module.branch(signed);
        self.module.begin(signed);
    }

    /// The first instance of an invocation, and how many lie between two of its own.
    fn share(&mut self, size: Word) -> (Word, Word) {
        let before = self.module.word(Op::IMul, &[self.workgroup, size]);
        let first = self.module.word(Op::IAdd, &[before, self.own]);
        (first, self.module.constant(self.workgroup_size.saturating_mul(self.workgroups)))
    }

    /// Code for each number from `first` up to `end`, `step` apart.
    fn each(&mut self, first: Word, end: Word, step: Word, body_of: impl FnOnce(&mut Code, Word)) {
        let mut turns = Loop::new(&mut self.module);
        let next = self.module.id();
        let number = self.module.id();
        turns.count_as((number, next), first, step);
        let before = self.module.block();
        turns.enter(&mut self.module, before);
        let more = self.module.truth(Op::ULessThan, &[number, end]);
        turns.goes_on_if(&mut self.module, more);
        body_of(self, number);
        turns.end(&mut self.module);
    }

    /// Number of an instance's row, or that of the counter for everything else.
    fn row(&mut self, memory: &CountedMemory, table: &RowTable, instance: Word) -> Word {
        let [zero, rows] = [0, table.rows].map(|word| self.module.constant(word));
        // Each word without a digit adds the number of all rows, so that the sum leaves the table for good.
        let mut sum = zero;
        let mut weight = 1;
        for column in &table.columns {
            let word = self.load(column.source, memory, instance);
            let digit = self.digit(&column.words, weight, word, rows);
            sum = self.module.word(Op::IAdd, &[sum, digit]);
            weight *= column.words.len() as u32;
        }
        for slot in 0..memory.slots {
            let listed = |column: &RowColumn| column.source == WordSource::Slot(slot);
            let is_done = memory.done.contains(&slot);
            if table.columns.iter().any(listed) && !is_done {
                continue;
            }
            let word = self.load(WordSource::Slot(slot), memory, instance);
            let known = self.parameter(if is_done { Parameter::Done } else { Parameter::Poison });
            let equal = self.module.truth(Op::IEqual, &[word, known]);
            let [equal_adds, other_adds] = if is_done { [zero, rows] } else { [rows, zero] };
            let added = self.module.word(Op::Select, &[equal, equal_adds, other_adds]);
            sum = self.module.word(Op::IAdd, &[sum, added]);
        }
        let inside = self.module.truth(Op::ULessThan, &[sum, rows]);
        self.module.word(Op::Select, &[inside, sum, rows])
    }

    /// What a word adds to the number of its row.
    fn digit(&mut self, words: &[u32], weight: u32, word: Word, unknown: Word) -> Word {
        if words.iter().copied().eq(0..words.len() as u32) {
            let [count, weight] = [words.len() as u32, weight].map(|word| self.module.constant(word));
            let known = self.module.truth(Op::ULessThan, &[word, count]);
            let digit = self.module.word(Op::IMul, &[word, weight]);
            return self.module.word(Op::Select, &[known, digit, unknown]);
        }
        let mut digit = unknown;
        for (number, known) in (0..).zip(words) {
            let [known, added] = [*known, number * weight].map(|word| self.module.constant(word));
            let equal = self.module.truth(Op::IEqual, &[word, known]);
            digit = self.module.word(Op::Select, &[equal, added, digit]);
        }
        digit
    }

    fn load(&mut self, source: WordSource, memory: &CountedMemory, instance: Word) -> Word {
        let pointer = match source {
            WordSource::Slot(slot) => self.result(slot, instance),
            WordSource::Storage { number, word } => {
                let index = self.word_of(memory, (number, word), instance);
                self.element(Shown::Locations, index)
            }
            WordSource::Texel { number } => {
                let index = self.word_of(memory, (number, 0), instance);
                self.element(Shown::Texels, index)
            }
        };
        self.module.word(Op::Load, &[pointer])
    }

    /// Number of a word of a storage among those of all locations.
    fn word_of(&mut self, memory: &CountedMemory, (number, word): (u32, u32), instance: Word) -> Word {
        let unit = self.unit(number, instance);
        let [words, word] = [memory.storage_words.max(1), word].map(|word| self.module.constant(word));
        let first = self.module.word(Op::IMul, &[unit, words]);
        self.module.word(Op::IAdd, &[first, word])
    }

    /// Number of the unit of a storage.
    fn unit(&mut self, number: u32, instance: Word) -> Word {
        let number = self.module.constant(number);
        let stride = self.parameter(Parameter::Stride);
        let first = self.multiply(instance, stride);
        unit(self, first, number)
    }

    /// Pointer to a result word.
    fn result(&mut self, slot: u32, instance: Word) -> Word {
        let slot = self.module.constant(slot);
        let index = result_word(self, slot, self.total, instance);
        self.element(Shown::Results, index)
    }

    /// Pointer to a word of a buffer, which is among the bindings.
    fn element(&mut self, shown: Shown, index: Word) -> Word {
        let bound = self.bindings.iter().zip(&self.buffers).find(|(known, _)| **known == shown);
        let buffer = bound.map_or(0, |(_, buffer)| *buffer);
        self.module.element(buffer, index)
    }

    /// Pointer to a counter of the workgroup.
    fn local(&mut self, counters: Word, index: Word) -> Word {
        let ty = self.module.pointer(StorageClass::Workgroup, self.module.u32);
        self.module.on_ids(Op::AccessChain, ty, &[counters, index])
    }

    /// Scope and semantics of a relaxed atomic.
    fn relaxed(&mut self, scope: Scope) -> [Operand; 2] {
        let scope = if scope == Scope::Device { self.device } else { scope };
        [
            Operand::IdScope(self.module.constant(scope as u32)),
            Operand::IdMemorySemantics(self.module.constant(MemorySemantics::RELAXED.bits())),
        ]
    }

    fn atomic_add(&mut self, pointer: Word, value: Word, scope: Scope) {
        let [scope, semantics] = self.relaxed(scope);
        let ty = self.module.u32;
        self.module.value(
            Op::AtomicIAdd,
            ty,
            [Operand::IdRef(pointer), scope, semantics, Operand::IdRef(value)],
        );
    }

    fn atomic_store(&mut self, pointer: Word, value: Word, scope: Scope) {
        let [scope, semantics] = self.relaxed(scope);
        self.module
            .effect(Op::AtomicStore, [Operand::IdRef(pointer), scope, semantics, Operand::IdRef(value)]);
    }

    fn atomic_load(&mut self, pointer: Word, scope: Scope) -> Word {
        let [scope, semantics] = self.relaxed(scope);
        let ty = self.module.u32;
        self.module.value(Op::AtomicLoad, ty, [Operand::IdRef(pointer), scope, semantics])
    }

    /// A control barrier of the workgroup: atomics on its counters before it happen before those behind it.
    fn meet(&mut self) {
        let scope = self.module.constant(Scope::Workgroup as u32);
        let semantics = MemorySemantics::ACQUIRE_RELEASE | MemorySemantics::WORKGROUP_MEMORY;
        let semantics = self.module.constant(semantics.bits());
        self.module.effect(
            Op::ControlBarrier,
            [Operand::IdScope(scope), Operand::IdScope(scope), Operand::IdMemorySemantics(semantics)],
        );
    }

    fn finish(mut self) -> Helper {
        self.module.effect(Op::Return, []);
        Helper { words: self.module.finish(self.workgroup_size), bindings: self.bindings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> CountedMemory {
        CountedMemory {
            lanes: 8,
            slots: 4,
            storage_words: 2,
            initial: vec![0, 7 << 32 | 5],
            done: vec![3],
            by_round: false,
            workgroup_size: 64,
            workgroups: 3,
            first_receipt: 100,
            device_scope: true,
        }
    }

    fn table() -> RowTable {
        let column = |source, words: &[u32]| RowColumn { source, words: words.to_vec() };
        RowTable::new(vec![
            column(WordSource::Slot(0), &[0, 1, 2]),
            column(WordSource::Storage { number: 1, word: 1 }, &[7, u32::MAX]),
            column(WordSource::Texel { number: 0 }, &[0, 1]),
        ])
        .unwrap()
    }

    #[test]
    fn every_row_has_digits_of_its_own() {
        let table = table();
        let mut seen = Vec::new();
        for row in 0..table.rows() {
            let mut digits = Vec::new();
            table.digits(row, &mut digits);
            assert_eq!(digits[0] + 3 * (digits[1] + 2 * digits[2]), row as usize);
            seen.push(digits);
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 12);
    }

    #[test]
    fn tables_are_bounded_and_no_column_is_empty() {
        let column = |count| RowColumn { source: WordSource::Slot(0), words: (0..count).collect() };
        assert_eq!(RowTable::new(vec![column(128), column(128)]).unwrap().rows(), MAX_ROWS);
        assert_eq!(RowTable::new(vec![column(128), column(129)]), None);
        assert_eq!(RowTable::new(vec![column(0)]), None);
        assert_eq!(RowTable::new(Vec::new()).unwrap().counters(), 2);
    }

    #[test]
    fn the_kernels_keep_the_rules_of_modules() {
        for by_round in [false, true] {
            for device_scope in [false, true] {
                let memory = CountedMemory { by_round, device_scope, ..memory() };
                for helper in [reset(&memory), count(&memory, &table())] {
                    assert_eq!(crate::check::check(&helper.words).unwrap(), Vec::new());
                }
            }
        }
        let bindings = count(&memory(), &table()).bindings;
        assert_eq!(bindings, [Shown::Results, Shown::Counters, Shown::Locations, Shown::Texels]);
    }

    #[test]
    fn the_kernels_hold_no_instruction_that_is_not_listed() {
        for helper in [reset(&memory()), count(&memory(), &table())] {
            for instruction in crate::load(&helper.words).unwrap().all_inst_iter() {
                let op = instruction.class.opcode;
                assert!(crate::OPCODES.contains(&op), "{op:?}");
            }
        }
    }
}
