//! Litmus families, and the most strongly synchronized test of each style.

use litmus::{
    Access, ArithmeticOperation, BranchRelation, Compute, ControlBarrier, Flow, Instruction, InstructionKind,
    LabelId, LocationId, MemoryPlace, Operand, Order, Placement, RegisterId, RmwOperation, Scope, Semantics,
    StorageClass, StorageClassSet, Term, Test, ThreadId,
};

use super::draft::Draft;

/// A litmus family: the accesses of each thread and the outcome in question.
///
/// A column is a list of words: `Wx1` writes 1 to x, `Rx0` reads x and expects 0, `Ux12` is a
/// read-modify-write that reads 1 and writes 2. `Vx12` is one without an order, and `B` a control barrier. A
/// lower-case location is a payload; an upper-case one carries synchronization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LitmusShape {
    /// Its name in the field.
    pub name: &'static str,
    columns: &'static [&'static str],
    finals: &'static [(char, i64)],
    /// True if the synchronizing accesses are relaxed, for coherence tests.
    relaxed: bool,
    /// True if a plain payload makes sense in it.
    plain: bool,
}

const fn shape(
    name: &'static str,
    columns: &'static [&'static str],
    finals: &'static [(char, i64)],
    relaxed: bool,
    plain: bool,
) -> LitmusShape {
    LitmusShape { name, columns, finals, relaxed, plain }
}

/// The shapes, few events first.
pub const SHAPES: &[LitmusShape] = &[
    shape("CoWR0", &["WX1 RX0"], &[], true, false),
    shape("CoRW1", &["RX1 WX1"], &[], true, false),
    shape("CoWW", &["WX1 WX2"], &[('x', 1)], true, false),
    shape("RMW+RMW", &["UX01", "UX02"], &[], true, false),
    shape("RMW+W", &["UX01", "WX2"], &[('x', 1)], true, false),
    shape("CoRR", &["WX1", "RX1 RX0"], &[], true, false),
    shape("CoRW2", &["WX1", "RX1 WX2"], &[('x', 1)], true, false),
    shape("CoWR", &["WX1 RX2", "WX2"], &[('x', 1)], true, false),
    shape("MP+cbar", &["Wx1 B", "B Rx0"], &[], false, true),
    shape("LB+cbar", &["Rx1 B", "B Wx1"], &[], false, true),
    shape("MP", &["Wx1 WY1", "RY1 Rx0"], &[], false, true),
    shape("LB", &["Rx1 WY1", "RY1 Wx1"], &[], false, true),
    shape("S", &["Wx2 WY1", "RY1 Wx1"], &[('x', 2)], false, false),
    shape("S+R", &["Wx2 WY1", "RY1 Wx1 Rx2"], &[], false, true),
    shape("CoRR2", &["WX1", "WX2", "RX1 RX2", "RX2 RX1"], &[], true, false),
    shape("SB+cbar", &["Wx1 B Ry0", "Wy1 B Rx0"], &[], false, true),
    shape("WRC", &["Wx1", "Rx1 WY1", "RY1 Rx0"], &[], false, false),
    shape("ISA2", &["Wx1 WY1", "RY1 WZ1", "RZ1 Rx0"], &[], false, true),
    shape("RS", &["Wx1 WY1", "VY12", "RY2 Rx0"], &[], false, true),
    shape("SB+rmw", &["Wx1 UZ01 Ry0", "Wy1 UZ12 Rx0"], &[], false, false),
];

/// Implementation of a release or acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Style {
    /// By the order of an atomic load or store; a control barrier's by its own semantics.
    Atomic,
    /// By a memory barrier next to the access.
    Fence,
    /// By a read-modify-write.
    Rmw,
}

impl Style {
    fn word(self) -> &'static str {
        match self {
            Style::Atomic => "at",
            Style::Fence => "fe",
            Style::Rmw => "rmw",
        }
    }
}

/// A variant of a shape: style, placement and storage classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telling {
    /// The shape.
    pub shape: LitmusShape,
    /// Style of releases.
    pub release: Style,
    /// Style of acquires.
    pub acquire: Style,
    /// True if payloads are plain accesses, guarded by the value read; else relaxed atomics.
    pub plain: bool,
    /// Placement of each thread.
    pub places: Vec<Placement>,
    /// Storage class of payloads.
    pub payload: StorageClass,
    /// Storage class of the accesses that synchronize.
    pub carrier: StorageClass,
    /// True if each scope reaches only those that the access is for, so that chains have to do the rest; else
    /// every scope spans all threads.
    pub tight: bool,
}

impl LitmusShape {
    /// Returns the number of threads.
    pub fn threads(&self) -> usize {
        self.columns.len()
    }

    fn has(&self, wanted: impl Fn(&ShapeWord) -> bool) -> bool {
        self.columns.iter().flat_map(|column| words(column)).any(|word| wanted(&word))
    }

    /// Returns the styles and forms of the shape on these places, in one storage class.
    pub fn cells(&self, places: &[Placement]) -> Vec<Telling> {
        let releases =
            self.has(|word| matches!(word, ShapeWord::Write { carrier: true, .. })) && !self.relaxed;
        let acquires =
            self.has(|word| matches!(word, ShapeWord::Read { carrier: true, .. })) && !self.relaxed;
        let meets = self.has(|word| *word == ShapeWord::Barrier);
        let all: &[Style] = &[Style::Atomic, Style::Fence, Style::Rmw];
        // A shape with a control barrier has no read-modify-write to synchronize with.
        let some = |wanted: bool| {
            if meets {
                &all[..2]
            } else if wanted {
                all
            } else {
                &all[..1]
            }
        };
        let mut cells = Vec::new();
        for plain in [false, true] {
            if plain && !self.plain {
                continue;
            }
            for release in some(releases) {
                for acquire in some(acquires) {
                    cells.push(Telling {
                        shape: *self,
                        release: *release,
                        acquire: *acquire,
                        plain,
                        places: places.to_vec(),
                        payload: StorageClass::Buffer,
                        carrier: StorageClass::Buffer,
                        tight: false,
                    });
                }
            }
        }
        cells
    }
}

/// A word of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShapeWord {
    Write { location: char, carrier: bool, value: i64 },
    Read { location: char, carrier: bool, value: i64 },
    Rmw { location: char, ordered: bool, old: i64, new: i64 },
    Barrier,
}

fn words(column: &'static str) -> impl Iterator<Item = ShapeWord> {
    column.split(' ').filter_map(|text| {
        let mut letters = text.chars();
        let kind = letters.next()?;
        if kind == 'B' {
            return Some(ShapeWord::Barrier);
        }
        let letter = letters.next()?;
        // An uppercase letter marks a location that carries synchronization.
        let (location, carrier) = (letter.to_ascii_lowercase(), letter.is_ascii_uppercase());
        let value = i64::from(letters.next()?.to_digit(10)?);
        Some(match kind {
            'W' => ShapeWord::Write { location, carrier, value },
            'R' => ShapeWord::Read { location, carrier, value },
            _ => {
                let new = i64::from(letters.next()?.to_digit(10)?);
                ShapeWord::Rmw { location, ordered: kind == 'U', old: value, new }
            }
        })
    })
}

/// The distance of two threads.
fn level(first: Placement, second: Placement) -> u8 {
    // 3: the device only; 2: the queue family; 1: the workgroup; 0: the subgroup.
    if first.queue_family != second.queue_family {
        3
    } else if first.workgroup != second.workgroup {
        2
    } else {
        u8::from(first.subgroup != second.subgroup)
    }
}

/// The narrowest scope that spans all these places.
fn spanning_scope(places: &[Placement]) -> Scope {
    let widest = places.iter().flat_map(|a| places.iter().map(|b| level(*a, *b))).max();
    match widest {
        Some(3) => Scope::Device,
        Some(2) => Scope::QueueFamily,
        Some(1) => Scope::Workgroup,
        _ => Scope::Subgroup,
    }
}

/// Placements of a number of threads, each a tree of queue families, workgroups and subgroups: those in which all pairs
/// share the same, and where `unequal`, for three threads the others too.
pub fn placements(threads: usize, unequal: bool) -> Vec<Vec<Placement>> {
    let mut found: Vec<Vec<Placement>> = Vec::new();
    for level in [2u8, 1, 3, 0] {
        found.push(place_threads(threads, &|_, _| level));
        if threads == 1 {
            return found;
        }
    }
    if unequal && threads == 3 {
        for near in 0..4u8 {
            for far in near + 1..4 {
                for outsider in 0..3 {
                    // Two threads are near each other, and the third is equally far from both.
                    let level = |a: usize, b: usize| if a == outsider || b == outsider { far } else { near };
                    found.push(place_threads(3, &level));
                }
            }
        }
    }
    found
}

/// Returns a placement whose threads a and b share the levels that `level` returns.
fn place_threads(threads: usize, level: &dyn Fn(usize, usize) -> u8) -> Vec<Placement> {
    let share = |a: usize, b: usize, at_most: u8| a == b || level(a, b) <= at_most;
    // The number of a unit: how many units of its parent began before it.
    let number = |thread: usize, at_most: u8, parent: u8| {
        // The first thread of a unit represents it.
        let first = |t: usize| (0..threads).find(|other| share(t, *other, at_most)).unwrap_or(t);
        let mine = first(thread);
        (0..mine).filter(|t| first(*t) == *t && share(*t, mine, parent)).count() as u32
    };
    (0..threads)
        .map(|thread| Placement {
            // The device is the parent of all queue families: no level exceeds 4.
            queue_family: number(thread, 2, 4),
            queue: 0,
            workgroup: number(thread, 1, 2),
            subgroup: number(thread, 0, 1),
        })
        .collect()
}

impl Telling {
    /// Returns the name of the variant.
    pub fn name(&self) -> String {
        let Telling { shape, release, acquire, plain, places, .. } = self;
        let mut name = shape.name.to_owned();
        let carries = shape.has(|word| matches!(word, ShapeWord::Write { carrier: true, .. }));
        let meets = shape.has(|word| *word == ShapeWord::Barrier);
        if !shape.relaxed && carries || meets && (*release, *acquire) != (Style::Atomic, Style::Atomic) {
            name = format!("{name}+{}-{}", release.word(), acquire.word());
        }
        if *plain {
            name.push_str(".plain");
        }
        if places.len() > 1 {
            let levels: Vec<&str> = places
                .iter()
                .zip(places.iter().skip(1))
                .map(|(a, b)| ["sg", "wg", "qf", "dv"][usize::from(level(*a, *b)) % 4])
                .collect();
            let same = levels.windows(2).all(|pair| pair[0] == pair[1]);
            name = format!("{name}.{}", if same { levels[0].to_owned() } else { levels.join("-") });
        }
        name
    }

    /// The scope that spans a thread and the next one, or its predecessor for the last.
    fn beside(&self, thread: usize) -> Scope {
        let first = thread.min(self.places.len().saturating_sub(2));
        spanning_scope(self.places.get(first..(first + 2).min(self.places.len())).unwrap_or_default())
    }

    /// The scope that spans the threads that use a location.
    fn around(&self, location: char) -> Scope {
        let uses = |column: &'static str| {
            words(column).any(|word| match word {
                ShapeWord::Write { location: other, .. }
                | ShapeWord::Read { location: other, .. }
                | ShapeWord::Rmw { location: other, .. } => other == location,
                ShapeWord::Barrier => false,
            })
        };
        let places: Vec<Placement> = (self.shape.columns.iter().zip(&self.places))
            .filter(|(column, _)| uses(column))
            .map(|(_, place)| *place)
            .collect();
        spanning_scope(&places)
    }

    /// The test of this cell with the strongest synchronization.
    pub fn top(&self) -> Test {
        let mut draft = Draft::new(&self.name());
        let scope = spanning_scope(&self.places);
        let classes = StorageClassSet::EMPTY.with(self.payload).with(self.carrier);
        let mut wanted = Vec::new();
        for (index, (column, place)) in self.shape.columns.iter().zip(&self.places).enumerate() {
            let thread = draft.thread(*place);
            // Payloads are for the next thread; those of the last thread are from its predecessor.
            let near = if self.tight { self.beside(index) } else { scope };
            let (draft, wanted) = (&mut draft, &mut wanted);
            ShapeColumn {
                cell: self,
                draft,
                thread,
                scope,
                near,
                widest: scope,
                classes,
                wanted,
                guards: false,
            }
            .build(words(column).collect());
        }
        for (location, value) in self.shape.finals {
            let location = draft.location(*location);
            wanted.push((Term::Location(location, 0), *value));
        }
        draft.ask(&wanted);
        draft.test
    }
}

struct ShapeColumn<'a> {
    cell: &'a Telling,
    draft: &'a mut Draft,
    thread: ThreadId,
    /// Scope of the current access.
    scope: Scope,
    /// Scope of payloads.
    near: Scope,
    /// Scope of barriers.
    widest: Scope,
    classes: StorageClassSet,
    wanted: &'a mut Vec<(Term, i64)>,
    /// True if some access is skipped unless an earlier read returns the expected value.
    guards: bool,
}

impl ShapeColumn<'_> {
    fn build(mut self, words: Vec<ShapeWord>) {
        for (index, word) in words.iter().enumerate() {
            let payload_follows = words.iter().skip(index + 1).any(|later| {
                matches!(
                    later,
                    ShapeWord::Write { carrier: false, .. } | ShapeWord::Read { carrier: false, .. }
                )
            });
            self.word(*word, payload_follows && self.cell.plain);
        }
        if self.guards {
            self.draft.push(self.thread, InstructionKind::Flow(Flow::Label(LabelId(0))));
        }
    }

    fn semantics(&self, order: Order) -> Semantics {
        Semantics {
            order,
            classes: self.classes,
            make_available: order.releases(),
            make_visible: order.acquires(),
            ..Semantics::RELAXED
        }
    }

    fn fence(&mut self, order: Order) {
        let kind = InstructionKind::Fence { scope: self.scope, semantics: self.semantics(order) };
        self.draft.push(self.thread, kind);
    }

    fn want(&mut self, register: RegisterId, value: i64, guard: bool) {
        self.wanted.push((Term::Register(self.thread, register), value));
        if guard {
            if !self.guards {
                self.guards = true;
                self.draft.label(self.thread);
            }
            // Without the expected value, the thread skips the rest, so that a later plain payload
            // does not race.
            let branch = InstructionKind::Flow(Flow::Branch {
                relation: BranchRelation::NotEqual,
                left: Operand::Register(register),
                right: Operand::Constant(value),
                target: LabelId(0),
            });
            self.draft.push(self.thread, branch);
        }
    }

    fn payload(&self) -> Access {
        if self.cell.plain { Access::Coherent { scope: self.scope } } else { self.atomic(None) }
    }

    fn atomic(&self, order: Option<Order>) -> Access {
        let semantics = order.map_or(Semantics::RELAXED, |order| self.semantics(order));
        Access::Atomic { scope: self.scope, semantics }
    }

    fn rmw(&mut self, location: LocationId, operation: RmwOperation, order: Option<Order>) -> RegisterId {
        let destination = self.draft.register(self.thread);
        let place = MemoryPlace::of(location, self.cell.carrier);
        let semantics = order.map_or(Semantics::RELAXED, |order| self.semantics(order));
        let kind = InstructionKind::rmw(destination, place, operation, self.scope, semantics);
        self.draft.push(self.thread, kind);
        destination
    }

    fn store(&mut self, location: LocationId, value: i64, class: StorageClass, access: Access) {
        self.draft.store(self.thread, location, Operand::Constant(value), class, access);
    }

    fn load(&mut self, location: LocationId, class: StorageClass, access: Access) -> RegisterId {
        self.draft.load(self.thread, location, class, access)
    }

    fn word(&mut self, word: ShapeWord, guard: bool) {
        let (payload, carrier) = (self.cell.payload, self.cell.carrier);
        self.scope = match word {
            ShapeWord::Write { carrier: false, .. } | ShapeWord::Read { carrier: false, .. } => self.near,
            ShapeWord::Write { location, .. }
            | ShapeWord::Read { location, .. }
            | ShapeWord::Rmw { location, .. }
                if self.cell.tight =>
            {
                self.cell.around(location)
            }
            _ => self.widest,
        };
        match word {
            ShapeWord::Write { location, carrier: false, value } => {
                let location = self.draft.location(location);
                self.store(location, value, payload, self.payload());
            }
            ShapeWord::Read { location, carrier: false, value } => {
                let location = self.draft.location(location);
                let register = self.load(location, payload, self.payload());
                self.wanted.push((Term::Register(self.thread, register), value));
            }
            ShapeWord::Write { location, value, .. } => {
                let location = self.draft.location(location);
                match self.cell.release {
                    _ if self.cell.shape.relaxed => self.store(location, value, carrier, self.atomic(None)),
                    Style::Atomic => self.store(location, value, carrier, self.atomic(Some(Order::Release))),
                    Style::Fence => {
                        self.fence(Order::Release);
                        self.store(location, value, carrier, self.atomic(None));
                    }
                    Style::Rmw => {
                        let operation = RmwOperation::Exchange(Operand::Constant(value));
                        self.rmw(location, operation, Some(Order::Release));
                    }
                }
            }
            ShapeWord::Read { location, value, .. } => {
                let location = self.draft.location(location);
                let register = match self.cell.acquire {
                    _ if self.cell.shape.relaxed => self.load(location, carrier, self.atomic(None)),
                    Style::Atomic => self.load(location, carrier, self.atomic(Some(Order::Acquire))),
                    Style::Fence => self.load(location, carrier, self.atomic(None)),
                    Style::Rmw => {
                        // An addition of 0 reads without a change.
                        let nothing = RmwOperation::Fetch(ArithmeticOperation::Add, Operand::Constant(0));
                        self.rmw(location, nothing, Some(Order::Acquire))
                    }
                };
                if self.cell.acquire == Style::Fence && !self.cell.shape.relaxed {
                    self.fence(Order::Acquire);
                }
                self.want(register, value, guard);
            }
            ShapeWord::Rmw { location, ordered, old, new } => {
                let location = self.draft.location(location);
                let order = (ordered && !self.cell.shape.relaxed).then_some(Order::AcquireRelease);
                let register = self.rmw(location, RmwOperation::Exchange(Operand::Constant(new)), order);
                self.want(register, old, guard);
            }
            ShapeWord::Barrier => {
                let split = |style: Style| style == Style::Fence;
                let (before, after) = (split(self.cell.release), split(self.cell.acquire));
                if before {
                    self.fence(Order::AcquireRelease);
                }
                // With barriers on both sides, its own semantics would add nothing.
                let semantics = (!before || !after).then(|| self.semantics(Order::AcquireRelease));
                self.draft.push(
                    self.thread,
                    InstructionKind::ControlBarrier(ControlBarrier {
                        execution_scope: Scope::Workgroup,
                        memory_scope: self.scope,
                        semantics,
                        id: "0".to_owned(),
                        resource: None,
                        quorum: None,
                    }),
                );
                if after {
                    self.fence(Order::AcquireRelease);
                }
            }
        }
    }
}

/// Counts the operations of a test: accesses, barriers, availability and visibility operations.
pub fn operations(test: &Test) -> usize {
    test.threads.iter().flat_map(|thread| &thread.instructions).filter(|i| is_operation(i)).count()
}

fn is_operation(instruction: &Instruction) -> bool {
    !matches!(
        instruction.kind,
        InstructionKind::Flow(Flow::Label(_) | Flow::Goto(_) | Flow::Branch { .. } | Flow::BranchIf { .. })
            | InstructionKind::Compute(
                Compute::Compare { .. } | Compute::Arithmetic { .. } | Compute::Move { .. }
            )
    )
}
