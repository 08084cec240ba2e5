//! Random programs with subgroup operations: the lanes of one subgroup, and another thread on the same
//! locations.

use super::columns::{ProgramColumn, ProgramColumns};
use super::{ProgramFamily, RandomProgram, SplitMix64};

/// Bound on the accesses of a program, because the witness enumerates all orders.
const MAX_ACCESSES: usize = 7;

/// A program that is being written.
struct TangleProgram {
    random: SplitMix64,
    lanes: usize,
    /// The columns of the threads, the lanes first.
    program: ProgramColumns,
    accesses: usize,
    /// The lane that skips the outermost blocks.
    skipping_lane: Option<usize>,
}

/// The program of a seed with subgroup operations.
pub fn generate_subgroup_program(seed: u64) -> RandomProgram {
    let mut random = SplitMix64(seed);
    let lanes = random.pick(&[1, 2, 2, 2, 2, 3]);
    let others = random.pick(&[0, 1, 1]);
    let threads = lanes + others;
    let mut writer = TangleProgram::new(random, lanes, threads);
    let operation_count = writer.random.pick(&[1, 1, 2, 2, 3]);
    for meeting in 0..operation_count {
        for thread in 0..threads {
            writer.emit_accesses(thread);
        }
        if writer.random.chance(25) {
            let (all, mut name) = ((0..lanes).collect::<Vec<_>>(), meeting);
            writer.emit_barrier(&all, &mut name);
        } else {
            writer.emit_operation(meeting);
        }
    }
    for thread in 0..threads {
        writer.emit_accesses(thread);
    }
    RandomProgram {
        family: ProgramFamily::Subgroup(lanes),
        text: writer.program.render(&format!("subgroup-{seed}")),
        bound: 1,
    }
}

/// The program of a seed with operations and barriers that branches skip: nested blocks, and lanes with separate
/// instructions in them.
pub fn generate_guarded_program(seed: u64) -> RandomProgram {
    let mut random = SplitMix64(seed);
    let lanes = random.pick(&[2, 3, 3]);
    let others = random.pick(&[0, 0, 1]);
    let threads = lanes + others;
    let mut writer = TangleProgram::new(random, lanes, threads);
    if writer.random.chance(60) {
        // The threads outside the subgroup are in its workgroup.
        let others = &mut writer.program.columns[lanes..];
        others.iter_mut().for_each(|other| other.placement = Some((0, 0, 1)));
    }
    // Something that differs between lanes, and something that others decide.
    for lane in 0..lanes {
        let register = writer.new_register(lane);
        writer.push_line(lane, format!("sg.exclusive.add {register}, 1, lane"));
    }
    for thread in 0..threads {
        if writer.random.chance(50) {
            writer.emit_access(thread);
        }
    }
    let mut names = 0;
    let all: Vec<usize> = (0..lanes).collect();
    for _ in 0..writer.random.pick(&[1, 1, 1, 2]) {
        let mut members = all.clone();
        if lanes > 2 && writer.random.chance(25) {
            members.remove(writer.random.below(lanes));
        }
        // Control flow is uniform in a block that every thread of the workgroup enters.
        if writer.random.chance(60) {
            writer.skipping_lane = Some(writer.random.below(lanes));
        }
        let label = names;
        writer.emit_block(&members, 0, &mut names);
        if others > 0 && writer.random.chance(60) {
            writer.emit_foreign_block(lanes, label);
        }
    }
    // The order of a barrier in a block is observable after it.
    for thread in 0..threads {
        if writer.accesses < MAX_ACCESSES - 1 && writer.random.chance(60) {
            writer.emit_access(thread);
        }
    }
    RandomProgram {
        family: ProgramFamily::Subgroup(lanes),
        text: writer.program.render(&format!("subgroup-{seed}")),
        bound: 1,
    }
}

impl TangleProgram {
    fn new(random: SplitMix64, lanes: usize, threads: usize) -> TangleProgram {
        let mut program = ProgramColumns::declaring(&["x = 0", "y = 0"]);
        let column = |thread| ProgramColumn::at(0, usize::from(thread >= lanes), 0);
        program.columns.extend((0..threads).map(column));
        program.question = "x == 1 /\\ y == 1".to_owned();
        TangleProgram { random, lanes, program, accesses: 0, skipping_lane: None }
    }

    /// Emits a block with the label of another block, in a thread outside the subgroup.
    fn emit_foreign_block(&mut self, thread: usize, label: usize) {
        let register = match self.registers(thread) {
            0 => "0".to_owned(),
            count => format!("r{}", self.random.below(count)),
        };
        let relation = self.random.pick(&["beq", "bne"]);
        let value = self.random.pick(&["0", "1"]);
        self.push_line(thread, format!("{relation} {register}, {value}, LC{}", 100 + label));
        self.push_line(thread, format!("sg.ballot unused, 1, other{label}"));
        self.push_line(thread, format!("LC{}:", 100 + label));
    }

    /// A block of some lanes.
    fn emit_block(&mut self, members: &[usize], depth: usize, names: &mut usize) {
        let label = format!("LC{}", 100 + *names);
        *names += 1;
        for lane in members {
            let relation = self.random.pick(&["beq", "bne", "blt"]);
            let register = self.random.below(self.registers(*lane));
            let value = self.random.pick(&["0", "1", "1", "2"]);
            if depth == 0 && self.skipping_lane == Some(*lane) {
                // Nearly always taken, so that this lane skips the block.
                self.push_line(*lane, format!("bge r{register}, 0, {label}"));
            } else {
                self.push_line(*lane, format!("{relation} r{register}, {value}, {label}"));
            }
        }
        let begin = *names;
        for _ in 0..self.random.pick(&[0, 1, 1, 2]) {
            for lane in members {
                if self.accesses < 4 && self.random.chance(8) {
                    self.emit_access(*lane);
                }
            }
            if depth < 2 && begin < 4 && self.random.chance(45) {
                self.emit_block(members, depth + 1, names);
            } else if self.random.chance(40) {
                self.emit_barrier(members, names);
            } else {
                self.emit_partial_operation(members, names);
            }
        }
        // The last part observes the participants, or orders their operations.
        if self.random.chance(30) {
            self.emit_barrier(members, names);
        } else {
            self.emit_partial_operation(members, names);
        }
        for lane in members {
            self.push_line(*lane, format!("{label}:"));
        }
    }

    /// Emits an operation that some of the lanes may not reach.
    fn emit_partial_operation(&mut self, members: &[usize], names: &mut usize) {
        let instance = format!("o{names}");
        *names += 1;
        let arithmetic = self.random.pick(&["add", "min", "max", "and", "or", "xor"]);
        let word = match self.random.below(9) {
            0 => "elect".to_owned(),
            1 => "all".to_owned(),
            2 => "any".to_owned(),
            3 => "all_equal".to_owned(),
            4 => "broadcast_first".to_owned(),
            5 => format!("reduce.{arithmetic}"),
            6 => format!("inclusive.{arithmetic}"),
            7 => format!("exclusive.{arithmetic}"),
            _ => "ballot".to_owned(),
        };
        for lane in members {
            let value =
                if word == "elect" { String::new() } else { format!(" {},", self.pick_value(*lane, 50)) };
            let register = self.new_register(*lane);
            self.push_line(*lane, format!("sg.{word} {register},{value} {instance}"));
        }
    }

    fn new_register(&mut self, thread: usize) -> String {
        self.program.columns[thread].new_register()
    }

    fn registers(&self, thread: usize) -> usize {
        self.program.columns[thread].registers
    }

    /// A constant or, in some of a hundred cases, a register that has a value.
    fn pick_value(&mut self, thread: usize, percent: usize) -> String {
        match self.registers(thread) {
            count if count > 0 && self.random.chance(percent) => format!("r{}", self.random.below(count)),
            _ => self.random.pick(&["0", "1", "1", "2"]).to_owned(),
        }
    }

    fn push_line(&mut self, thread: usize, line: String) {
        self.program.push_line(thread, line);
    }

    fn emit_accesses(&mut self, thread: usize) {
        for _ in 0..self.random.pick(&[0, 1, 1, 2]) {
            if self.accesses < MAX_ACCESSES {
                self.emit_access(thread);
            }
        }
        if self.random.chance(15) {
            let scope = self.pick_scope();
            let fence =
                self.random.pick(&[("rel", ".semav"), ("acq", ".semvis"), ("acq_rel", ".semav.semvis")]);
            self.push_line(thread, format!("membar.{}.{scope}.semsc0{}", fence.0, fence.1));
        }
    }

    fn pick_scope(&mut self) -> &'static str {
        self.random.pick(&["sg", "wg", "dv", "dv"])
    }

    fn emit_access(&mut self, thread: usize) {
        self.accesses += 1;
        let (scope, location) = (self.pick_scope(), self.random.pick(&["x", "y"]));
        let guard = self.registers(thread) > 0 && self.random.chance(20);
        if guard {
            let register = self.random.below(self.registers(thread));
            let label = self.program.columns[thread].lines.len();
            let relation = self.random.pick(&["beq", "bne"]);
            self.push_line(thread, format!("{relation} r{register}, 1, LC{label}"));
            self.emit_memory_access(thread, scope, location);
            self.push_line(thread, format!("LC{label}:"));
        } else {
            self.emit_memory_access(thread, scope, location);
        }
    }

    fn emit_memory_access(&mut self, thread: usize, scope: &str, location: &str) {
        // Rarely a read value: for cycles of values, engine and witness try different ones.
        let value = self.pick_value(thread, 12);
        let text = match self.random.below(9) {
            0 | 1 => format!("st.atom.{scope}.sc0 {location}, {value}"),
            2 => format!("st.atom.rel.{scope}.sc0.semsc0.semav {location}, {value}"),
            3 => format!("st.nonpriv.sc0 {location}, {value}"),
            4 | 5 => format!("ld.atom.{scope}.sc0 {}, {location}", self.new_register(thread)),
            6 => format!("ld.atom.acq.{scope}.sc0.semsc0.semvis {}, {location}", self.new_register(thread)),
            7 => format!("ld.nonpriv.sc0 {}, {location}", self.new_register(thread)),
            _ => format!("rmw.atom.{scope}.sc0 {}, {location}, {value}", self.new_register(thread)),
        };
        self.push_line(thread, text);
    }

    /// Emits a control barrier that some of the lanes may not reach.
    fn emit_barrier(&mut self, members: &[usize], names: &mut usize) {
        let instance = *names;
        *names += 1;
        let semantics =
            self.random.pick(&["acq_rel.sg.semsc0.semav.semvis", "acq_rel.wg.semsc0.semav.semvis", "sg"]);
        for lane in members {
            self.push_line(*lane, format!("cbar.execsg.{semantics} b{instance}"));
        }
    }

    /// An operation of some lanes.
    fn emit_operation(&mut self, meeting: usize) {
        let mut members: Vec<usize> = (0..self.lanes).filter(|_| self.random.chance(80)).collect();
        if members.is_empty() {
            members.push(self.random.below(self.lanes));
        }
        let named = members[self.random.below(members.len())];
        let operation = self.random.pick(&["add", "min", "max", "and", "or", "xor"]);
        let choice = self.random.below(17);
        for lane in members.clone() {
            let other = members[self.random.below(members.len())];
            // Mnemonic, numbers, and source of the lane's value.
            let (word, numbers, source) = match choice {
                0 => ("elect".to_owned(), String::new(), None),
                1 => ("all".to_owned(), String::new(), None),
                2 => ("any".to_owned(), String::new(), None),
                3 => ("all_equal".to_owned(), String::new(), None),
                4 => ("ballot".to_owned(), String::new(), None),
                5 | 6 => ("broadcast".to_owned(), format!(", {named}"), None),
                7 => ("broadcast_first".to_owned(), String::new(), None),
                8 => ("shuffle".to_owned(), format!(", {other}"), None),
                9 => ("shuffle_xor".to_owned(), ", 1".to_owned(), Some(lane ^ 1)),
                10 => ("shuffle_up".to_owned(), ", 1".to_owned(), Some(lane.wrapping_sub(1))),
                11 => ("shuffle_down".to_owned(), ", 1".to_owned(), Some(lane + 1)),
                12 => ("rotate".to_owned(), ", 1, 2".to_owned(), Some(lane ^ 1)),
                13 => ("quad_swap_horizontal".to_owned(), String::new(), Some(lane ^ 1)),
                14 => (format!("reduce.{operation}"), String::new(), None),
                15 => (format!("inclusive.{operation}"), String::new(), None),
                _ => (format!("exclusive.{operation}"), String::new(), None),
            };
            // A value from a lane outside the tangle is undefined, so that no other instruction may
            // use it.
            let defined = source.is_none_or(|source| members.contains(&source));
            let value = if choice == 0 { String::new() } else { format!(" {},", self.pick_value(lane, 60)) };
            let register = if defined { self.new_register(lane) } else { "unused".to_owned() };
            let comma = numbers.strip_prefix(", ").map_or(String::new(), |numbers| format!(" {numbers},"));
            self.push_line(lane, format!("sg.{word} {register},{value}{comma} o{meeting}"));
        }
    }
}
