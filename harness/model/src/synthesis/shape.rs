//! Litmus families, and the most strongly synchronized test of each style.

use litmus::{
    Access, ArithmeticOperation, Comparison, Compute, ControlBarrier, Flow, Instruction, InstructionKind,
    LabelId, LocationId, MemoryPlace, Operand, Order, Placement, RegisterId, RmwOperation, Scope, Semantics,
    StorageClass, StorageClassSet, Term, Test, ThreadId, closed_enum,
};

use super::draft::TestBuilder;

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
    final_values: &'static [(char, i64)],
    /// True if the synchronizing accesses are relaxed, for coherence tests.
    is_relaxed: bool,
    /// True if a plain payload makes sense in it.
    allows_plain_payload: bool,
}

const fn shape(
    name: &'static str,
    columns: &'static [&'static str],
    finals: &'static [(char, i64)],
    relaxed: bool,
    plain: bool,
) -> LitmusShape {
    LitmusShape { name, columns, final_values: finals, is_relaxed: relaxed, allows_plain_payload: plain }
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

closed_enum! {
    /// Implementation of a release or acquire.
    pub enum SynchronizationStyle {
        /// By the order of an atomic load or store; a control barrier's by its own semantics.
        Atomic = "at",
        /// By a memory barrier next to the access.
        Fence = "fe",
        Rmw = "rmw",
    }
}

/// A variant of a shape: style, placement and storage classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeVariant {
    pub shape: LitmusShape,
    pub release: SynchronizationStyle,
    pub acquire: SynchronizationStyle,
    /// True if payloads are plain accesses, guarded by the value read; else relaxed atomics.
    pub has_plain_payload: bool,
    /// Placement of each thread.
    pub places: Vec<Placement>,
    pub payload: StorageClass,
    /// Storage class of the accesses that synchronize.
    pub carrier: StorageClass,
    /// True if each scope reaches only those that the access is for, so that chains have to do the rest; else
    /// every scope spans all threads.
    pub has_tight_scopes: bool,
}

impl LitmusShape {
    pub fn thread_count(&self) -> usize {
        self.columns.len()
    }

    fn has_word(&self, is_wanted_word: impl Fn(&ShapeWord) -> bool) -> bool {
        self.columns.iter().flat_map(|column| parse_column(column)).any(|word| is_wanted_word(&word))
    }

    /// Returns the styles and forms of the shape on these places, in one storage class.
    pub fn variants(&self, places: &[Placement]) -> Vec<ShapeVariant> {
        let releases =
            self.has_word(|word| matches!(word, ShapeWord::Write { carrier: true, .. })) && !self.is_relaxed;
        let acquires =
            self.has_word(|word| matches!(word, ShapeWord::Read { carrier: true, .. })) && !self.is_relaxed;
        let has_barrier = self.has_word(|word| *word == ShapeWord::Barrier);
        let all: &[SynchronizationStyle] =
            &[SynchronizationStyle::Atomic, SynchronizationStyle::Fence, SynchronizationStyle::Rmw];
        // A shape with a control barrier has no read-modify-write to synchronize with.
        let styles = |wanted: bool| {
            if has_barrier {
                &all[..2]
            } else if wanted {
                all
            } else {
                &all[..1]
            }
        };
        let mut variants = Vec::new();
        for plain in [false, true] {
            if plain && !self.allows_plain_payload {
                continue;
            }
            for release in styles(releases) {
                for acquire in styles(acquires) {
                    variants.push(ShapeVariant {
                        shape: *self,
                        release: *release,
                        acquire: *acquire,
                        has_plain_payload: plain,
                        places: places.to_vec(),
                        payload: StorageClass::Buffer,
                        carrier: StorageClass::Buffer,
                        has_tight_scopes: false,
                    });
                }
            }
        }
        variants
    }
}

/// A word of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShapeWord {
    Write { location: char, carrier: bool, value: i64 },
    Read { location: char, carrier: bool, value: i64 },
    Rmw { location: char, is_ordered: bool, old: i64, new: i64 },
    Barrier,
}

fn parse_column(column: &'static str) -> impl Iterator<Item = ShapeWord> {
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
                ShapeWord::Rmw { location, is_ordered: kind == 'U', old: value, new }
            }
        })
    })
}

/// Returns the distance of two threads, from 0 (subgroup) to 3 (device).
fn placement_distance(first: Placement, second: Placement) -> u8 {
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
    let widest = places.iter().flat_map(|a| places.iter().map(|b| placement_distance(*a, *b))).max();
    match widest {
        Some(3) => Scope::Device,
        Some(2) => Scope::QueueFamily,
        Some(1) => Scope::Workgroup,
        _ => Scope::Subgroup,
    }
}

/// Returns placements of threads in queue families, workgroups and subgroups: those with equal distances of all
/// pairs, and, if `include_unequal`, for three threads also the others.
pub fn placements(threads: usize, include_unequal: bool) -> Vec<Vec<Placement>> {
    let mut found: Vec<Vec<Placement>> = Vec::new();
    for level in [2u8, 1, 3, 0] {
        found.push(place_at_distances(threads, &|_, _| level));
        if threads == 1 {
            return found;
        }
    }
    if include_unequal && threads == 3 {
        for near in 0..4u8 {
            for far in near + 1..4 {
                for outsider in 0..3 {
                    // Two threads are near each other, and the third is equally far from both.
                    let level = |a: usize, b: usize| if a == outsider || b == outsider { far } else { near };
                    found.push(place_at_distances(3, &level));
                }
            }
        }
    }
    found
}

/// Returns a placement whose threads a and b share the levels that `level` returns.
fn place_at_distances(threads: usize, level: &dyn Fn(usize, usize) -> u8) -> Vec<Placement> {
    let share = |a: usize, b: usize, at_most: u8| a == b || level(a, b) <= at_most;
    // The number of a unit: how many units of its parent began before it.
    let number = |thread: usize, at_most: u8, parent: u8| {
        // The first thread of a unit represents it.
        let first = |t: usize| (0..threads).find(|other| share(t, *other, at_most)).unwrap_or(t);
        let representative = first(thread);
        (0..representative).filter(|t| first(*t) == *t && share(*t, representative, parent)).count() as u32
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

impl ShapeVariant {
    pub fn name(&self) -> String {
        let ShapeVariant { shape, release, acquire, has_plain_payload: plain, places, .. } = self;
        let mut name = shape.name.to_owned();
        let has_carrier = shape.has_word(|word| matches!(word, ShapeWord::Write { carrier: true, .. }));
        let has_barrier = shape.has_word(|word| *word == ShapeWord::Barrier);
        if !shape.is_relaxed && has_carrier
            || has_barrier
                && (*release, *acquire) != (SynchronizationStyle::Atomic, SynchronizationStyle::Atomic)
        {
            name = format!("{name}+{}-{}", release.name(), acquire.name());
        }
        if *plain {
            name.push_str(".plain");
        }
        if places.len() > 1 {
            let levels: Vec<&str> = places
                .iter()
                .zip(places.iter().skip(1))
                .map(|(a, b)| ["sg", "wg", "qf", "dv"][usize::from(placement_distance(*a, *b)) % 4])
                .collect();
            let is_uniform = levels.windows(2).all(|pair| pair[0] == pair[1]);
            name = format!("{name}.{}", if is_uniform { levels[0].to_owned() } else { levels.join("-") });
        }
        name
    }

    /// Returns the scope that spans a thread and the next one, or its predecessor for the last.
    fn neighbour_scope(&self, thread: usize) -> Scope {
        let first = thread.min(self.places.len().saturating_sub(2));
        spanning_scope(self.places.get(first..(first + 2).min(self.places.len())).unwrap_or_default())
    }

    /// Returns the scope that spans the threads that use a location.
    fn location_scope(&self, location: char) -> Scope {
        let uses = |column: &'static str| {
            parse_column(column).any(|word| match word {
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

    /// Returns the test of this variant with the strongest synchronization.
    pub fn strongest_test(&self) -> Test {
        let mut draft = TestBuilder::new(&self.name());
        let scope = spanning_scope(&self.places);
        let classes = StorageClassSet::EMPTY.with(self.payload).with(self.carrier);
        let mut expected_values = Vec::new();
        for (index, (column, place)) in self.shape.columns.iter().zip(&self.places).enumerate() {
            let thread = draft.add_thread(*place);
            // Payloads are for the next thread; those of the last thread are from its predecessor.
            let payload_scope = if self.has_tight_scopes { self.neighbour_scope(index) } else { scope };
            let (draft, wanted) = (&mut draft, &mut expected_values);
            ThreadBuilder {
                variant: self,
                draft,
                thread,
                access_scope: scope,
                payload_scope,
                barrier_scope: scope,
                classes,
                expected_values: wanted,
                has_guard: false,
            }
            .emit_thread(parse_column(column).collect());
        }
        for (location, value) in self.shape.final_values {
            let location = draft.get_or_add_location(*location);
            expected_values.push((Term::Location(location, 0), *value));
        }
        draft.set_question(&expected_values);
        draft.test
    }
}

struct ThreadBuilder<'a> {
    variant: &'a ShapeVariant,
    draft: &'a mut TestBuilder,
    thread: ThreadId,
    /// Scope of the current access.
    access_scope: Scope,
    payload_scope: Scope,
    barrier_scope: Scope,
    classes: StorageClassSet,
    expected_values: &'a mut Vec<(Term, i64)>,
    /// True if some access is skipped unless an earlier read returns the expected value.
    has_guard: bool,
}

impl ThreadBuilder<'_> {
    fn emit_thread(mut self, words: Vec<ShapeWord>) {
        for (index, word) in words.iter().enumerate() {
            let payload_follows = words.iter().skip(index + 1).any(|later| {
                matches!(
                    later,
                    ShapeWord::Write { carrier: false, .. } | ShapeWord::Read { carrier: false, .. }
                )
            });
            self.emit_word(*word, payload_follows && self.variant.has_plain_payload);
        }
        if self.has_guard {
            self.draft.push_instruction(self.thread, InstructionKind::Flow(Flow::Label(LabelId(0))));
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

    fn emit_fence(&mut self, order: Order) {
        let kind = InstructionKind::Fence { scope: self.access_scope, semantics: self.semantics(order) };
        self.draft.push_instruction(self.thread, kind);
    }

    fn expect_value(&mut self, register: RegisterId, value: i64, guard: bool) {
        self.expected_values.push((Term::Register(self.thread, register), value));
        if guard {
            if !self.has_guard {
                self.has_guard = true;
                self.draft.add_label(self.thread);
            }
            // Without the expected value, the thread skips the rest, so that a later plain payload
            // does not race.
            let branch = InstructionKind::Flow(Flow::Branch {
                relation: Comparison::NotEqual,
                left: Operand::Register(register),
                right: Operand::Constant(value),
                target: LabelId(0),
            });
            self.draft.push_instruction(self.thread, branch);
        }
    }

    fn payload_access(&self) -> Access {
        if self.variant.has_plain_payload {
            Access::Coherent { scope: self.access_scope }
        } else {
            self.atomic_access(None)
        }
    }

    fn atomic_access(&self, order: Option<Order>) -> Access {
        let semantics = order.map_or(Semantics::RELAXED, |order| self.semantics(order));
        Access::Atomic { scope: self.access_scope, semantics }
    }

    fn emit_rmw(
        &mut self,
        location: LocationId,
        operation: RmwOperation,
        order: Option<Order>,
    ) -> RegisterId {
        let destination = self.draft.add_register(self.thread);
        let place = MemoryPlace::whole_location(location, self.variant.carrier);
        let semantics = order.map_or(Semantics::RELAXED, |order| self.semantics(order));
        let kind = InstructionKind::rmw(destination, place, operation, self.access_scope, semantics);
        self.draft.push_instruction(self.thread, kind);
        destination
    }

    fn emit_store(&mut self, location: LocationId, value: i64, class: StorageClass, access: Access) {
        self.draft.push_store(self.thread, location, Operand::Constant(value), class, access);
    }

    fn emit_load(&mut self, location: LocationId, class: StorageClass, access: Access) -> RegisterId {
        self.draft.push_load(self.thread, location, class, access)
    }

    fn emit_word(&mut self, word: ShapeWord, guard: bool) {
        let (payload, carrier) = (self.variant.payload, self.variant.carrier);
        self.access_scope = match word {
            ShapeWord::Write { carrier: false, .. } | ShapeWord::Read { carrier: false, .. } => {
                self.payload_scope
            }
            ShapeWord::Write { location, .. }
            | ShapeWord::Read { location, .. }
            | ShapeWord::Rmw { location, .. }
                if self.variant.has_tight_scopes =>
            {
                self.variant.location_scope(location)
            }
            _ => self.barrier_scope,
        };
        match word {
            ShapeWord::Write { location, carrier: false, value } => {
                let location = self.draft.get_or_add_location(location);
                self.emit_store(location, value, payload, self.payload_access());
            }
            ShapeWord::Read { location, carrier: false, value } => {
                let location = self.draft.get_or_add_location(location);
                let register = self.emit_load(location, payload, self.payload_access());
                self.expected_values.push((Term::Register(self.thread, register), value));
            }
            ShapeWord::Write { location, value, .. } => {
                let location = self.draft.get_or_add_location(location);
                let style = (!self.variant.shape.is_relaxed).then_some(self.variant.release);
                if style == Some(SynchronizationStyle::Fence) {
                    self.emit_fence(Order::Release);
                }
                if style == Some(SynchronizationStyle::Rmw) {
                    let operation = RmwOperation::Exchange(Operand::Constant(value));
                    self.emit_rmw(location, operation, Some(Order::Release));
                } else {
                    let order = (style == Some(SynchronizationStyle::Atomic)).then_some(Order::Release);
                    self.emit_store(location, value, carrier, self.atomic_access(order));
                }
            }
            ShapeWord::Read { location, value, .. } => {
                let location = self.draft.get_or_add_location(location);
                let style = (!self.variant.shape.is_relaxed).then_some(self.variant.acquire);
                let register = if style == Some(SynchronizationStyle::Rmw) {
                    // An addition of 0 reads without a change.
                    let nothing = RmwOperation::Fetch(ArithmeticOperation::Add, Operand::Constant(0));
                    self.emit_rmw(location, nothing, Some(Order::Acquire))
                } else {
                    let order = (style == Some(SynchronizationStyle::Atomic)).then_some(Order::Acquire);
                    self.emit_load(location, carrier, self.atomic_access(order))
                };
                if style == Some(SynchronizationStyle::Fence) {
                    self.emit_fence(Order::Acquire);
                }
                self.expect_value(register, value, guard);
            }
            ShapeWord::Rmw { location, is_ordered: ordered, old, new } => {
                let location = self.draft.get_or_add_location(location);
                let order = (ordered && !self.variant.shape.is_relaxed).then_some(Order::AcquireRelease);
                let register = self.emit_rmw(location, RmwOperation::Exchange(Operand::Constant(new)), order);
                self.expect_value(register, old, guard);
            }
            ShapeWord::Barrier => {
                let split = |style: SynchronizationStyle| style == SynchronizationStyle::Fence;
                let (before, after) = (split(self.variant.release), split(self.variant.acquire));
                if before {
                    self.emit_fence(Order::AcquireRelease);
                }
                // With barriers on both sides, its own semantics would add nothing.
                let semantics = (!before || !after).then(|| self.semantics(Order::AcquireRelease));
                self.draft.push_instruction(
                    self.thread,
                    InstructionKind::ControlBarrier(ControlBarrier {
                        execution_scope: Scope::Workgroup,
                        memory_scope: self.access_scope,
                        semantics,
                        id: "0".to_owned(),
                        resource: None,
                        quorum: None,
                    }),
                );
                if after {
                    self.emit_fence(Order::AcquireRelease);
                }
            }
        }
    }
}

/// Counts the operations of a test: accesses, barriers, availability and visibility operations.
pub fn count_operations(test: &Test) -> usize {
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
