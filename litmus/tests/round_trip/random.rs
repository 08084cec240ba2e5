//! Random valid tests.
//!
//! Long because one builder draws every construct from one list of choices.

use litmus::*;

/// The choices that determine a random test; after the last one, every choice is the first option.
struct Choices<'a>(std::slice::Iter<'a, u16>);

impl Choices<'_> {
    fn choose_below(&mut self, n: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % n
    }

    fn choose_bool(&mut self) -> bool {
        self.choose_below(2) == 1
    }

    fn choose<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.choose_below(list.len())]
    }

    fn choose_constant(&mut self) -> i64 {
        // Values that every type can hold.
        self.choose(&[0, 1, 2, 127, 255, -1, -128])
    }
}

const SCOPES: [Scope; 8] = [
    Scope::Workgroup,
    Scope::Subgroup,
    Scope::QueueFamily,
    Scope::Device,
    Scope::Invocation,
    Scope::CrossDevice,
    Scope::ShaderCall,
    Scope::FragmentInterlock,
];
const TYPES: [ScalarType; 10] = [
    ScalarType::U32,
    ScalarType::U8,
    ScalarType::U16,
    ScalarType::U64,
    ScalarType::I8,
    ScalarType::I16,
    ScalarType::I32,
    ScalarType::I64,
    ScalarType::F32,
    ScalarType::F64,
];
const OPERATIONS: [ArithmeticOperation; 9] = [
    ArithmeticOperation::Add,
    ArithmeticOperation::Subtract,
    ArithmeticOperation::Multiply,
    ArithmeticOperation::Divide,
    ArithmeticOperation::And,
    ArithmeticOperation::Or,
    ArithmeticOperation::Xor,
    ArithmeticOperation::Minimum,
    ArithmeticOperation::Maximum,
];
const KINDS: [Option<Reference>; 5] = [
    None,
    Some(Reference::Buffer),
    Some(Reference::Workgroup),
    Some(Reference::Image),
    Some(Reference::Address),
];
const NAMES: [&str; 8] = ["x", "y", "_z0", "buffer", "u8", "true", "host", "Flag_1"];

/// Builds a valid test whose ids are in the parser's order.
struct Builder<'a> {
    choices: Choices<'a>,
    test: Test,
}

impl Builder<'_> {
    /// Sets the order of interlocked sections for the whole test.
    fn section_orders(&mut self) {
        let unordered = self.test.locations.len() % 2 == 1;
        for instruction in self.test.threads.iter_mut().flat_map(|thread| &mut thread.instructions) {
            if let InstructionKind::Interlock(interlock) = &mut instruction.kind
                && unordered
            {
                interlock.order = InterlockOrder::Unordered;
            }
        }
    }

    fn declarations(&mut self) {
        for name in &NAMES[..self.choices.choose_below(6)] {
            let c = &mut self.choices;
            let earlier = self.test.locations.len();
            let target = (earlier > 0).then(|| LocationId(c.choose_below(earlier) as u16));
            let mut scalar = c.choose_bool().then(|| c.choose(&TYPES));
            let wanted = c.choose(&[1, 1, 2, 3, 4]);
            let mut components =
                if scalar.is_some_and(|ty| ty.bytes() * u32::from(wanted) <= 16) { wanted } else { 1 };
            let vector = |id: LocationId| self.test.location(id).components;
            let init = match (c.choose_below(6), target) {
                (5, _) => LocationInit::Undefined,
                (1, Some(target)) if [1, components].contains(&vector(target)) => {
                    LocationInit::CopyOf(target)
                }
                (2, Some(target)) if components == 1 => LocationInit::AddressOf(target),
                (3, Some(target)) => {
                    // An alias must fit into its storage; without a type it has the storage's.
                    let storage = self.test.location(target);
                    if scalar.is_none_or(|ty| ty.bytes() * u32::from(components) > storage.bytes()) {
                        (scalar, components) = (storage.scalar, storage.components);
                    }
                    LocationInit::AliasOf(target)
                }
                (4, _) if components > 1 => LocationInit::Components(std::array::from_fn(|index| {
                    if index < usize::from(components) { c.choose(&[0, 1, 127, -128]) } else { 0 }
                })),
                _ if scalar.is_some() => LocationInit::Constant(c.choose(&[0, 1, 127, -128])),
                _ => LocationInit::Constant(c.choose_constant()),
            };
            self.test.locations.push(Location {
                name: (*name).to_owned(),
                reference: c.choose(&KINDS),
                scalar,
                components,
                init,
                host: c.choose_bool(),
                noncoherent: c.choose_bool(),
                declared: true,
                span: Span::default(),
            });
        }
    }

    fn threads(&mut self) {
        for number in 0..1 + self.choices.choose_below(4) as u32 {
            let c = &mut self.choices;
            let place = if c.choose_below(5) == 4 {
                ThreadPlace::Host
            } else {
                let workgroup = c.choose_below(3) as u32;
                ThreadPlace::Device(Placement {
                    queue_family: c.choose_below(3) as u32,
                    // All threads of a workgroup are on one queue.
                    queue: workgroup % 2,
                    workgroup,
                    subgroup: c.choose(&[0, 1, u32::MAX]),
                })
            };
            let mut registers = Vec::new();
            for name in &["r0", "r1", "r07"][..c.choose_below(4)] {
                let locations = self.test.locations.len();
                let of = LocationId(c.choose_below(locations.max(1)) as u16);
                let has_value = || !self.test.location(of).is_vector() && !self.test.has_undefined_init(of);
                let init = match c.choose_below(3) {
                    1 if locations > 0 && has_value() => RegisterInit::ValueOf(of),
                    2 if locations > 0 => {
                        RegisterInit::AddressOf(LocationId(c.choose_below(locations) as u16))
                    }
                    _ => RegisterInit::Constant(c.choose_constant()),
                };
                registers.push(Register { name: (*name).to_owned(), init, declared: true });
            }
            self.test.threads.push(Thread {
                number,
                place,
                registers,
                labels: Vec::new(),
                instructions: Vec::new(),
                span: Span::default(),
            });
        }
        for thread in 0..self.test.threads.len() {
            self.instructions(thread);
            self.no_barriers_among_jumps(thread);
        }
        for first in 0..self.test.threads.len() {
            if self.choices.choose_bool() && !self.is_host(first) {
                self.subgroup_operation(first);
            }
        }
    }

    /// Removes subgroup barriers from threads with jumps, where they would need a block.
    fn no_barriers_among_jumps(&mut self, thread: usize) {
        let instructions = &mut self.test.threads[thread].instructions;
        let jumps = |kind: &InstructionKind| {
            matches!(kind, InstructionKind::Flow(Flow::Goto(_) | Flow::Branch { .. } | Flow::BranchIf { .. }))
        };
        if instructions.iter().any(|instruction| jumps(&instruction.kind)) {
            for instruction in instructions {
                if let (Some(_), InstructionKind::ControlBarrier(barrier)) =
                    (instruction.kind.clone().tangle_instance(), &mut instruction.kind)
                {
                    barrier.execution_scope = Scope::Workgroup;
                }
            }
        }
    }

    /// Appends one operation to some lanes of a subgroup, starting at this thread.
    fn subgroup_operation(&mut self, first: usize) {
        let kind = self.subgroup_kind();
        let place = self.test.threads[first].place;
        for thread in first..self.test.threads.len() {
            if !self.test.threads[thread].place.shares_scope(place, Scope::Subgroup)
                || thread > first && self.choices.choose_bool()
            {
                continue;
            }
            // A register that no load assigns has 32 bits. The result of a single source lane may be
            // undefined, so it is unused.
            let destination = kind.source_lane(0).is_none() && self.choices.choose_bool();
            let destination = destination.then(|| self.named_register(thread, "r500"));
            let value = (kind != SubgroupKind::Elect).then(|| match self.choices.choose_bool() {
                true => Operand::Register(self.named_register(thread, "r501")),
                false => Operand::Constant(self.choices.choose_constant()),
            });
            let id = format!("sg{first}");
            let kind = InstructionKind::Subgroup(SubgroupOperation { kind, destination, value, id });
            self.test.threads[thread].instructions.push(Instruction { kind, span: Span::default() });
        }
    }

    fn subgroup_kind(&mut self) -> SubgroupKind {
        let number = self.choices.choose_below(40) as u32;
        let span =
            self.choices.choose(&[SubgroupSpan::Reduce, SubgroupSpan::Inclusive, SubgroupSpan::Exclusive]);
        self.choices.choose(&[
            SubgroupKind::Elect,
            SubgroupKind::All,
            SubgroupKind::Any,
            SubgroupKind::AllEqual,
            SubgroupKind::Ballot,
            SubgroupKind::Broadcast(number),
            SubgroupKind::BroadcastFirst,
            SubgroupKind::Shuffle(number),
            SubgroupKind::ShuffleXor(number),
            SubgroupKind::ShuffleUp(number),
            SubgroupKind::ShuffleDown(number),
            SubgroupKind::Rotate { delta: number, cluster: 1 << (number % 7) },
            SubgroupKind::QuadBroadcast(number),
            SubgroupKind::QuadSwap(QuadDirection::Horizontal),
            SubgroupKind::QuadSwap(QuadDirection::Vertical),
            SubgroupKind::QuadSwap(QuadDirection::Diagonal),
            SubgroupKind::Arithmetic(span, SUBGROUP_ARITHMETIC[number as usize % SUBGROUP_ARITHMETIC.len()]),
        ])
    }

    fn instructions(&mut self, thread: usize) {
        let count = self.choices.choose_below(8);
        let mut placed = Vec::new();
        for _ in 0..count {
            let kind = self.instruction(thread, &mut placed);
            let kind = self.cooperative(thread, kind);
            self.test.threads[thread].instructions.push(Instruction { kind, span: Span::default() });
        }
        for label in 0..self.test.threads[thread].labels.len() {
            if !placed.contains(&label) {
                let kind = InstructionKind::Flow(Flow::Label(LabelId(label as u16)));
                self.test.threads[thread].instructions.push(Instruction { kind, span: Span::default() });
            }
        }
    }

    fn register(&mut self, thread: usize) -> RegisterId {
        let name = self.choices.choose(&["r0", "r1", "r2", "r07", "r99"]);
        self.named_register(thread, name)
    }

    fn named_register(&mut self, thread: usize, name: &str) -> RegisterId {
        let registers = &mut self.test.threads[thread].registers;
        let index = registers.iter().position(|r| r.name == name).unwrap_or_else(|| {
            let init = RegisterInit::Constant(0);
            registers.push(Register { name: name.to_owned(), init, declared: false });
            registers.len() - 1
        });
        RegisterId(index as u16)
    }

    fn label(&mut self, thread: usize) -> LabelId {
        let name = self.choices.choose(&["LC00", "LC01", "LC1"]);
        let labels = &mut self.test.threads[thread].labels;
        let index = labels.iter().position(|label| label.name == name).unwrap_or_else(|| {
            labels.push(Label { name: name.to_owned() });
            labels.len() - 1
        });
        LabelId(index as u16)
    }

    fn operand(&mut self, thread: usize) -> Operand {
        if self.choices.choose_bool() {
            Operand::Register(self.register(thread))
        } else {
            Operand::Constant(self.choices.choose_constant())
        }
    }

    /// Returns a random place: location, class, type and offset.
    fn memory(&mut self) -> MemoryPlace {
        let name = self.choices.choose(&NAMES);
        let known = self.test.locations.iter().position(|location| location.name == name);
        let index = known.unwrap_or_else(|| {
            self.test.locations.push(Location { declared: false, ..Location::new(name) });
            self.test.locations.len() - 1
        });
        let location = &self.test.locations[index];
        let class = match location.reference {
            Some(reference) => reference.storage_class(),
            None => self.choices.choose(&StorageClass::ALL),
        };
        let bytes = location.bytes();
        let own = location.scalar_type();
        let component = location.is_vector().then_some(own);
        let scalar =
            self.choices.choose_bool().then(|| self.choices.choose(&TYPES)).filter(|ty| ty.bytes() <= bytes);
        // An access of a component has its type.
        let scalar = scalar.or(component);
        let size = scalar.unwrap_or(own).bytes();
        let offset = self.choices.choose_below((bytes / size) as usize) as u32 * size;
        let location = LocationId(index as u16);
        MemoryPlace { location, offset, scalar, class, address: None }
    }

    /// Returns a random subset of the names.
    fn ranges(&mut self) -> Vec<LocationId> {
        (0..self.test.locations.len() as u16).map(LocationId).filter(|_| self.choices.choose_bool()).collect()
    }

    /// Returns an operation on some other threads; without other threads, returns another operation.
    fn others(&mut self, thread: usize, operation: fn(Vec<ThreadId>) -> SystemOperation) -> InstructionKind {
        // A device thread is submitted once.
        let mut submitted = Vec::new();
        for instruction in self.test.threads.iter().flat_map(|thread| &thread.instructions) {
            if let InstructionKind::System(SystemOperation::Submit(threads)) = &instruction.kind {
                submitted.extend_from_slice(threads);
            }
        }
        let mut others: Vec<ThreadId> = (0..self.test.threads.len())
            .filter(|other| *other != thread && !self.is_host(*other))
            .map(|other| ThreadId(other as u16))
            .filter(|other| !submitted.contains(other))
            .collect();
        if others.is_empty() {
            return InstructionKind::Compute(Compute::Arithmetic {
                destination: self.register(thread),
                operation: ArithmeticOperation::Add,
                left: Operand::Constant(1),
                right: Operand::Constant(1),
            });
        }
        let first = self.choices.choose_below(others.len());
        others.rotate_left(first);
        let kept = 1 + self.choices.choose_below(others.len());
        others.truncate(kept);
        InstructionKind::System(operation(others))
    }

    fn mask(&mut self) -> AccessMask {
        AccessMask::single_accesses()
            .filter(|_| self.choices.choose_bool())
            .fold(AccessMask::NONE, AccessMask::with)
    }

    fn semantics(&mut self, orders: &[Order]) -> Semantics {
        let order = self.choices.choose(orders);
        if order == Order::Relaxed {
            return Semantics::RELAXED;
        }
        let named = self.choices.choose_below(16) as u8;
        let mut ignored = IgnoredClasses::NONE;
        for class in IgnoredClass::ALL {
            // At least one class must be named.
            if self.choices.choose_below(8) == 0 || named == 0 {
                ignored = ignored.with(class);
            }
        }
        Semantics {
            order,
            classes: StorageClassSet(named),
            ignored,
            make_available: order.releases() && self.choices.choose_bool(),
            make_visible: order.acquires() && self.choices.choose_bool(),
            sequential: false,
        }
    }

    fn is_host(&self, thread: usize) -> bool {
        self.test.threads[thread].place == ThreadPlace::Host
    }

    /// Returns a random scope; host threads only have one.
    fn scope(&mut self, thread: usize) -> Scope {
        if self.is_host(thread) { Scope::CrossDevice } else { self.choices.choose(&SCOPES) }
    }

    fn access(&mut self, thread: usize, order: Order) -> Access {
        match self.choices.choose_below(4) {
            1 | 2 if self.is_host(thread) => Access::Private,
            0 => Access::Private,
            1 => Access::NonPrivate,
            2 => Access::Coherent { scope: self.choices.choose(&SCOPES) },
            _ => Access::Atomic {
                scope: self.scope(thread),
                semantics: self.semantics(&[Order::Relaxed, order]),
            },
        }
    }

    // Ids follow the order in which the text mentions the names.
    /// Makes some plain shader accesses cooperative.
    fn cooperative(&mut self, thread: usize, kind: InstructionKind) -> InstructionKind {
        let InstructionKind::Access(access) = kind else { return kind };
        let may_be = matches!(access.kind, AccessKind::Load(_) | AccessKind::Store(_))
            && !access.is_vector()
            && !access.strength.is_atomic()
            && !self.is_host(thread);
        let performer = if may_be && self.choices.choose_below(4) == 0 {
            Performer::Cooperative
        } else {
            access.performer
        };
        InstructionKind::Access(MemoryAccess { performer, ..access })
    }

    /// Returns a plain vector access to a location that is large enough, if one exists.
    fn vector(&mut self, thread: usize) -> Option<InstructionKind> {
        let count = self.choices.choose(&[2_u32, 3, 4]);
        let scalar = self.choices.choose(&TYPES);
        let bytes = count * scalar.bytes();
        let fits = |location: &Location| bytes <= location.bytes();
        let all = &self.test.locations;
        let candidates: Vec<usize> = (0..all.len()).filter(|index| fits(&all[*index])).collect();
        if candidates.is_empty() || self.is_host(thread) {
            return None;
        }
        let index = self.choices.choose(&candidates);
        let room = (self.test.locations[index].bytes() - bytes) / scalar.bytes();
        let first = self.choices.choose_below(room as usize + 1) as u32 * scalar.bytes();
        let class = match self.test.locations[index].reference {
            Some(reference) => reference.storage_class(),
            None => self.choices.choose(&StorageClass::ALL),
        };
        let access = match self.choices.choose_below(3) {
            0 => Access::Private,
            1 => Access::NonPrivate,
            _ => Access::Coherent { scope: self.choices.choose(&SCOPES) },
        };
        let store = self.choices.choose_bool();
        let mut free = vec!["r0", "r1", "r2", "r07", "r99"];
        let (mut values, mut destinations) = (Vec::new(), Vec::new());
        for _ in 0..count {
            if store {
                values.push(self.operand(thread));
            } else {
                let name = free.remove(self.choices.choose_below(free.len()));
                destinations.push(self.named_register(thread, name));
            }
        }
        let kind = match Components::from_slice(&destinations) {
            Some(destinations) => AccessKind::Load(destinations),
            None => AccessKind::Store(Components::from_slice(&values)?),
        };
        let location = LocationId(index as u16);
        let place = MemoryPlace { location, offset: first, scalar: Some(scalar), class, address: None };
        Some(InstructionKind::Access(MemoryAccess {
            place,
            kind,
            strength: access,
            performer: Performer::Invocation,
        }))
    }

    fn instruction(&mut self, thread: usize, placed: &mut Vec<usize>) -> InstructionKind {
        use Order::{Acquire, AcquireRelease, Relaxed, Release};
        if self.choices.choose_below(6) == 0
            && let Some(vector) = self.vector(thread)
        {
            return vector;
        }
        match self.choices.choose_below(13) {
            0 => {
                let destination = self.register(thread);
                let place = self.memory();
                InstructionKind::load(destination, place, self.access(thread, Acquire))
            }
            1 => {
                let place = self.memory();
                let value = self.operand(thread);
                InstructionKind::store(place, value, self.access(thread, Release))
            }
            2 => {
                let destination = self.register(thread);
                let place = self.memory();
                let semantics = self.semantics(&[Relaxed, Acquire, Release, AcquireRelease]);
                let first = self.operand(thread);
                let operation = match self.choices.choose_below(3) {
                    0 => RmwOperation::Exchange(first),
                    1 => RmwOperation::Fetch(self.choices.choose(&OPERATIONS), first),
                    _ => RmwOperation::CompareExchange {
                        compare: first,
                        value: self.operand(thread),
                        unequal: if semantics.order.acquires() && self.choices.choose_bool() {
                            match self.choices.choose_below(3) {
                                0 => self.semantics(&[Acquire]),
                                _ => Semantics { order: Acquire, make_available: false, ..semantics },
                            }
                        } else {
                            Semantics::RELAXED
                        },
                    },
                };
                let scope = self.scope(thread);
                InstructionKind::rmw(destination, place, operation, scope, semantics)
            }
            3 => InstructionKind::Fence {
                scope: self.scope(thread),
                semantics: self.semantics(&[Acquire, Release, AcquireRelease]),
            },
            4..=6 | 12 if self.is_host(thread) => match self.choices.choose_below(4) {
                0 => InstructionKind::System(SystemOperation::Flush(self.ranges())),
                1 => InstructionKind::System(SystemOperation::Invalidate(self.ranges())),
                2 => self.others(thread, SystemOperation::Submit),
                _ => self.others(thread, SystemOperation::Wait),
            },
            4 => {
                let semantics = self.semantics(&[Relaxed, Acquire, Release, AcquireRelease]);
                let resource =
                    self.choices.choose_bool().then(|| self.choices.choose(&["0", "7", "res"]).to_owned());
                let quorum = (resource.is_some() && self.choices.choose_bool())
                    .then(|| self.choices.choose_below(9) as u32);
                InstructionKind::ControlBarrier(ControlBarrier {
                    execution_scope: self.choices.choose(&SCOPES),
                    memory_scope: self.choices.choose(&SCOPES),
                    semantics: (semantics.order != Relaxed).then_some(semantics),
                    id: self.choices.choose(&["0", "00", "1", "0x1", "bar"]).to_owned(),
                    resource,
                    quorum,
                })
            }
            5 => InstructionKind::System(SystemOperation::AvailableToDevice),
            6 => InstructionKind::System(SystemOperation::VisibleFromDevice),
            7 => InstructionKind::Compute(Compute::Arithmetic {
                destination: self.register(thread),
                operation: self.choices.choose(&OPERATIONS),
                left: self.operand(thread),
                right: self.operand(thread),
            }),
            11 => InstructionKind::System(match self.choices.choose_bool() {
                _ if self.is_host(thread) => SystemOperation::Flush(Vec::new()),
                true => SystemOperation::Available(self.mask()),
                false => SystemOperation::Visible(self.mask()),
            }),
            12 => match self.choices.choose_below(3) {
                0 => match self.others(thread, SystemOperation::Wait) {
                    InstructionKind::System(SystemOperation::Wait(threads)) => {
                        InstructionKind::ShaderCall(threads)
                    }
                    other => other,
                },
                end => InstructionKind::Interlock(Interlock {
                    end: if end == 1 { InterlockEnd::Begin } else { InterlockEnd::End },
                    order: InterlockOrder::Ordered,
                    section: self.choices.choose(&["0", "00", "part"]).to_owned(),
                }),
            },
            8 => InstructionKind::Flow(Flow::Goto(self.label(thread))),
            9 => InstructionKind::Flow(Flow::Branch {
                relation: self.choices.choose(&[
                    BranchRelation::Equal,
                    BranchRelation::NotEqual,
                    BranchRelation::GreaterOrEqual,
                    BranchRelation::LessOrEqual,
                    BranchRelation::Greater,
                    BranchRelation::Less,
                ]),
                left: self.operand(thread),
                right: self.operand(thread),
                target: self.label(thread),
            }),
            _ => {
                let label = self.label(thread);
                if placed.contains(&usize::from(label.0)) {
                    return InstructionKind::Flow(Flow::Goto(label));
                }
                placed.push(usize::from(label.0));
                InstructionKind::Flow(Flow::Label(label))
            }
        }
    }

    fn system_sync(&mut self) {
        for _ in 0..self.choices.choose_below(4) {
            let mut point = || {
                let thread = self.choices.choose_below(self.test.threads.len());
                let length = self.test.threads[thread].instructions.len();
                let instruction = (length > 0 && self.choices.choose_bool())
                    .then(|| self.choices.choose_below(length) as u16);
                SyncPoint { thread: ThreadId(thread as u16), instruction }
            };
            let (from, to) = (point(), point());
            self.test.system_sync.push(SystemSync { from, to, span: Span::default() });
        }
    }

    fn named(&mut self) -> Option<Term> {
        let thread = self.choices.choose_below(self.test.threads.len());
        let registers = self.test.threads[thread].registers.len();
        let locations = self.test.locations.len();
        match (registers, locations, self.choices.choose_bool()) {
            (0, 0, _) => None,
            (0, _, _) | (1.., 1.., true) => {
                let location = LocationId(self.choices.choose_below(locations) as u16);
                let components = usize::from(self.test.location(location).components);
                Some(Term::Location(location, self.choices.choose_below(components) as u8))
            }
            _ => Some(Term::Register(
                ThreadId(thread as u16),
                RegisterId(self.choices.choose_below(registers) as u16),
            )),
        }
    }

    fn term(&mut self) -> Term {
        let constant = Term::Constant(self.choices.choose_constant());
        match (self.choices.choose_below(3), self.named()) {
            (0, _) | (_, None) => constant,
            (1, Some(Term::Location(location, _))) => Term::Address(location),
            (_, Some(term)) => term,
        }
    }

    fn condition(&mut self, depth: usize) -> Condition {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        match self.choices.choose_below(if depth == 0 { 2 } else { 5 }) {
            0 => Condition::Compare {
                left: self.term(),
                comparison: self.choices.choose(&[
                    Equal,
                    NotEqual,
                    Less,
                    LessOrEqual,
                    Greater,
                    GreaterOrEqual,
                ]),
                right: self.term(),
            },
            1 => Condition::True,
            2 => Condition::Not(Box::new(self.condition(depth - 1))),
            3 => Condition::And(Box::new(self.condition(depth - 1)), Box::new(self.condition(depth - 1))),
            _ => Condition::Or(Box::new(self.condition(depth - 1)), Box::new(self.condition(depth - 1))),
        }
    }

    fn questions(&mut self) {
        for _ in 0..self.choices.choose_below(3) {
            let listed = self.named();
            self.test.listed_terms.extend(listed);
        }
        if self.choices.choose_bool() {
            self.test.filter = Some(self.condition(3));
        }
        let kinds =
            [QuestionKind::Exists, QuestionKind::NotExists, QuestionKind::Forall, QuestionKind::Final];
        if self.choices.choose_bool() {
            let (kind, condition) = (self.choices.choose(&kinds), self.condition(5));
            self.test.question = Some(Question { kind, condition, span: Span::default() });
        }
    }

    fn metadata(&mut self) {
        let c = &mut self.choices;
        let metadata = &mut self.test.metadata;
        for model in &["vulkan", "sc", "dartagnan"][..c.choose_below(4)] {
            let race = c.choose(&[None, Some(Race::Free), Some(Race::Racy)]);
            metadata.expectations.push(Expectation {
                model: (*model).to_owned(),
                reachability: c.choose(&[Reachability::Allowed, Reachability::Forbidden]),
                race,
                uninitialised: race.is_some() && c.choose_bool(),
                span: Span::default(),
            });
        }
        for strong in [false, true] {
            if c.choose_below(3) == 0 {
                let models = ["fair", "hsa-obe"][..c.choose_below(3)]
                    .iter()
                    .map(|model| (*model).to_owned())
                    .collect();
                metadata.terminations.push(TerminationExpectation { strong, models, span: Span::default() });
            }
        }
        let mut words = |list: &[&str]| -> Vec<String> {
            list[..c.choose_below(list.len() + 1)].iter().map(|word| (*word).to_owned()).collect()
        };
        metadata.clauses = words(&["VK-SW-01", "VK-HB-02"]);
        metadata.needs = words(&["shaderInt64", "vulkanMemoryModelDeviceScope"]);
        metadata.origin = words(&["a paper: section 2"]).pop();
        metadata.why = words(&["because", "of \"this", "and: that"]);
        metadata.comments =
            words(&["plain; text", "https://example.org", "\"quoted\"", "\"open", "why: no\"", "'#|"]);
    }
}

/// Builds the test that `choices` encode.
pub fn random_test(choices: &[u16]) -> Test {
    let test = Test {
        name: "random+test.1".to_owned(),
        dialect: Dialect::Vulkan,
        metadata: Metadata::default(),
        locations: Vec::new(),
        threads: Vec::new(),
        system_sync: Vec::new(),
        calls: litmus::ApiCalls::default(),
        listed_terms: Vec::new(),
        filter: None,
        question: None,
        khronos: None,
    };
    let mut builder = Builder { choices: Choices(choices.iter()), test };
    builder.declarations();
    builder.threads();
    builder.section_orders();
    builder.system_sync();
    builder.questions();
    builder.metadata();
    builder.test
}
