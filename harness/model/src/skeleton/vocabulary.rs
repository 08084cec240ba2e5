//! Vocabulary of cat files: event sets as tag bits, and the names of base sets and relations.

use litmus::{Access, Scope, Semantics};

/// The base sets that contain an event, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tags {
    bits: u64,
    /// Storage class of an access, as a bit.
    pub(crate) storage_classes: u8,
    /// Storage-class semantics.
    pub(crate) semantics: u8,
}

macro_rules! tags {
    ($($name:ident = $bit:expr, $text:expr, $doc:expr;)*) => {
        impl Tags { $(pub(crate) const $name: u64 = 1 << $bit;)* }
        /// The base sets of a model, each with a description.
        pub const BASE_SETS: &[(&str, &str)] = &[$(($text, $doc)),*];
        /// Returns the tag of a base set; `None` for other names.
        pub(crate) fn tag_of(name: &str) -> Option<u64> {
            match name { $($text => Some(Tags::$name),)* _ => None }
        }
    };
}

tags! {
    R = 0, "R", "reads; the read half of a read-modify-write";
    W = 1, "W", "writes; the write half of a read-modify-write; initial writes";
    F = 2, "F", "memory barriers, and control barriers with an order";
    CBAR = 3, "CBAR", "control barriers";
    ATOM = 4, "ATOM", "atomic accesses";
    RMW = 5, "RMW", "halves of read-modify-writes";
    ACQ = 6, "ACQ", "acquiring reads and barriers";
    REL = 7, "REL", "releasing writes and barriers";
    AV = 8, "AV", "writes that carry an availability operation, atomic writes included";
    VIS = 9, "VIS", "reads that carry a visibility operation, atomic reads included";
    SEMAV = 10, "SEMAV", "operations with MakeAvailable semantics";
    SEMVIS = 11, "SEMVIS", "operations with MakeVisible semantics";
    NONPRIV = 12, "NONPRIV", "non-private accesses, atomics included";
    IW = 13, "IW", "initial writes";
    AVDEVICE = 14, "AVDEVICE", "availability operations to the device domain";
    VISDEVICE = 15, "VISDEVICE", "visibility operations from the device domain";
    INV = 16, "INV", "operations at invocation scope";
    SG = 17, "SG", "operations at subgroup scope";
    WG = 18, "WG", "operations at workgroup scope";
    QF = 19, "QF", "operations at queue-family scope";
    DV = 20, "DV", "operations at device scope";
    FINAL = 21, "FINAL", "the reads of final values";
    XD = 22, "XD", "operations at cross-device scope; HSA's system scope";
    CALL = 24, "CALL", "operations at shader-call scope";
    FI = 25, "FI", "operations at fragment-interlock scope";
    HOST = 26, "HOST", "operations of host threads";
    NONCOHERENT = 27, "NONCOHERENT", "accesses of host threads to memory that is not host-coherent";
    DOMDEVICE = 28, "DOMDEVICE", "domain operations from the host domain to the device domain";
    DOMHOST = 29, "DOMHOST", "domain operations from the device domain to the host domain";
    AVHOST = 30, "AVHOST", "availability operations to the host domain (flush)";
    VISHOST = 31, "VISHOST", "visibility operations from the host domain (invalidate)";
    ARRIVE = 32, "ARRIVE", "arrivals of split barriers";
    WAIT = 33, "WAIT", "waits of split barriers";
    UW = 34, "UW", "initial writes of locations whose initial value is undefined, one for each value";
    SEQCST = 35, "SEQCST", "sequentially consistent operations (`.seq_cst`)";
    DECISIVE = 23, "DECISIVE", "reads that an HSA branch, await or address depends on";
}

/// The base relations of a model, each with a description.
pub const BASE_RELATIONS: &[(&str, &str)] = &[
    ("po", "program order; initial writes are in none"),
    ("int", "same thread, reflexive"),
    ("ext", "different threads"),
    ("loc", "same storage, or same cell of it where accesses differ in size; reflexive on accesses"),
    ("part", "to the other events of the same access, in other cells"),
    ("component", "to the events of the other components of the same vector access"),
    ("partial", "accesses of one storage that touch different sets of bytes"),
    ("uncovered", "an access and an API operation whose access mask or range excludes it, both ways"),
    ("scall", "shader-call-related, reflexive"),
    ("sco", "shader-call order between different invocations, transitive"),
    ("subop", "from an event before a subgroup operation to one of another lane of its tangle after it"),
    ("sfi", "fragments that overlap, reflexive"),
    ("interlock", "from the end of an interlock section to the begin of a later overlapping one"),
    ("vloc", "same name of memory, reflexive on accesses"),
    ("sref", "the same as vloc"),
    ("block", "blocks in workgroup memory that share storage, reflexive on accesses"),
    ("addr", "from a read to an access whose HSA address depends on it; other addresses are literal"),
    ("ssg", "same subgroup, reflexive"),
    ("swg", "same workgroup, reflexive"),
    ("sqf", "same queue family, reflexive"),
    ("rf", "reads-from"),
    (
        "co",
        "modification order of each storage, total, initial writes first; those of one undefined value in none",
    ),
    ("rmw", "from the read half of a read-modify-write to its write half"),
    ("syncbar", "instances of one control barrier that synchronize"),
    ("syncsplit", "from an arrival to a wait with the same execution scope and scope instance"),
    ("round", "from the n-th arrival of a thread to the n-th wait of any, counted for each execution scope"),
    ("ssw", "system-synchronizes-with"),
    ("data", "from a read to a write whose value is computed from it"),
    ("ctrl", "from a read to events controlled by an HSA branch or await that depends on it"),
    ("pkt", "HSA's packet fences: from every event of one thread to every event of another; the same as ssw"),
];

impl Tags {
    pub(crate) fn has(self, bits: u64) -> bool {
        self.bits & bits == bits
    }

    pub(crate) fn has_any(self, bits: u64) -> bool {
        self.bits & bits != 0
    }

    pub(crate) fn bits(self) -> u64 {
        self.bits
    }

    pub(crate) fn add(&mut self, bits: u64) {
        self.bits |= bits;
    }

    pub(crate) fn remove(&mut self, bits: u64) {
        self.bits &= !bits;
    }

    pub(super) fn add_scope(&mut self, scope: Scope) {
        self.add(match scope {
            Scope::Invocation => Tags::INV,
            Scope::Subgroup => Tags::SG,
            Scope::Workgroup => Tags::WG,
            Scope::QueueFamily => Tags::QF,
            Scope::Device => Tags::DV,
            Scope::ShaderCall => Tags::CALL,
            Scope::FragmentInterlock => Tags::FI,
            Scope::CrossDevice => Tags::DV | Tags::XD,
        });
    }

    pub(super) fn add_release(&mut self, semantics: &Semantics) {
        if semantics.order.releases() {
            self.add(Tags::REL);
            self.semantics |= semantics.classes.0;
            if semantics.make_available {
                self.add(Tags::SEMAV);
            }
            if semantics.sequential {
                self.add(Tags::SEQCST);
            }
        }
    }

    pub(super) fn add_acquire(&mut self, semantics: &Semantics) {
        if semantics.order.acquires() {
            self.add(Tags::ACQ);
            self.semantics |= semantics.classes.0;
            if semantics.make_visible {
                self.add(Tags::SEMVIS);
            }
            if semantics.sequential {
                self.add(Tags::SEQCST);
            }
        }
    }

    pub(super) fn add_read_access(&mut self, access: Access) {
        match access {
            Access::Private => {}
            Access::NonPrivate => self.add(Tags::NONPRIV),
            Access::Coherent { scope } => {
                self.add(Tags::NONPRIV | Tags::VIS);
                self.add_scope(scope);
            }
            Access::Atomic { scope, semantics } => {
                self.add(Tags::NONPRIV | Tags::VIS | Tags::ATOM);
                self.add_scope(scope);
                self.add_acquire(&semantics);
            }
        }
    }

    pub(super) fn add_write_access(&mut self, access: Access) {
        match access {
            Access::Private => {}
            Access::NonPrivate => self.add(Tags::NONPRIV),
            Access::Coherent { scope } => {
                self.add(Tags::NONPRIV | Tags::AV);
                self.add_scope(scope);
            }
            Access::Atomic { scope, semantics } => {
                self.add(Tags::NONPRIV | Tags::AV | Tags::ATOM);
                self.add_scope(scope);
                self.add_release(&semantics);
            }
        }
    }
}
