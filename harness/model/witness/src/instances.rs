//! The instances of scopes.

use litmus::{Flow, Instruction, InstructionKind, Placement, Scope, Test, ThreadPlace};

use crate::profile::TextProfile;
use crate::refusal::UnsupportedTest;

/// The threads in the instance of a scope around each thread, as bits.
pub struct Instances {
    instances: Vec<[u16; SHADER_SCOPES.len()]>,
}

/// The scopes of shaders, from narrow to wide. The rank of ShaderCall scope is an open question (VK-DOM-08).
pub const SHADER_SCOPES: [Scope; 7] = [
    Scope::Invocation,
    Scope::Subgroup,
    Scope::Workgroup,
    Scope::ShaderCall,
    Scope::FragmentInterlock,
    Scope::QueueFamily,
    Scope::Device,
];

// Only the host has CrossDevice scope.
const _: () = assert!(SHADER_SCOPES.len() + 1 == Scope::ALL.len(), "every scope of shaders is a level");

/// The index of a scope among [`SHADER_SCOPES`].
pub fn scope_index(scope: Scope) -> usize {
    SHADER_SCOPES.iter().position(|known| *known == scope).unwrap_or(0)
}

impl Instances {
    /// VK-SCOPE-01 to -08; VK-SCREL-01: shader-call-related is the symmetric and transitive closure of creation; fragments
    /// that name the same interlocked section overlap.
    pub fn new(test: &Test, profile: TextProfile) -> Result<Instances, UnsupportedTest> {
        let count = test.threads.len();
        let mut related: Vec<u16> = (0..count).map(|thread| 1 << thread).collect();
        let mut created: u16 = 0;
        let mut sections: Vec<Option<&str>> = vec![None; count];
        for (index, thread) in test.threads.iter().enumerate() {
            let jumps = |i: &Instruction| {
                matches!(i.kind, InstructionKind::Flow(Flow::Goto(_) | Flow::Branch { .. }))
            };
            for instruction in &thread.instructions {
                match &instruction.kind {
                    InstructionKind::ShaderCall(callees) => {
                        if thread.instructions.iter().any(jumps) {
                            return Err(UnsupportedTest::Calls);
                        }
                        for callee in callees {
                            let bit = 1u16 << callee.0;
                            if created & bit != 0 {
                                return Err(UnsupportedTest::Calls);
                            }
                            created |= bit;
                            related[index] |= bit;
                            related[usize::from(callee.0)] |= 1 << index;
                        }
                    }
                    InstructionKind::Interlock(interlock) => {
                        let section = &mut sections[index];
                        if section.is_some_and(|known| known != interlock.section) {
                            return Err(UnsupportedTest::Sections);
                        }
                        *section = Some(&interlock.section);
                    }
                    _ => {}
                }
            }
        }
        // Warshall's closure: invocations are related through any chain of calls.
        for middle in 0..count {
            for thread in 0..count {
                if related[thread] & (1 << middle) != 0 {
                    related[thread] |= related[middle];
                }
            }
        }
        let place = |thread: usize| match test.threads[thread].place {
            ThreadPlace::Device(place) => Some(place),
            ThreadPlace::Host => None,
        };
        let threads_where =
            |same: &dyn Fn(usize) -> bool| (0..count).filter(|t| same(*t)).fold(0, |s, t| s | 1 << t);
        let instances = (0..count)
            .map(|thread| {
                let own_bit: u16 = 1 << thread;
                let shares = |key: fn(Placement) -> (u32, u32, u32)| {
                    threads_where(&|other| place(other).map(key) == place(thread).map(key))
                };
                let fragments = match sections[thread] {
                    Some(_) => threads_where(&|other| sections[other] == sections[thread]),
                    None => own_bit,
                };
                [
                    own_bit,
                    shares(|p| (p.queue_family, p.workgroup, p.subgroup)),
                    shares(|p| (p.queue_family, p.workgroup, 0)),
                    if profile.has_shader_calls() { related[thread] } else { own_bit },
                    if profile.has_interlock() { fragments } else { own_bit },
                    shares(|p| (p.queue_family, 0, 0)),
                    shares(|_| (0, 0, 0)),
                ]
            })
            .collect();
        Ok(Instances { instances })
    }

    /// The threads in the instance of a scope around a thread.
    pub fn instance(&self, scope: Scope, thread: usize) -> u16 {
        self.instances[thread][scope_index(scope)]
    }

    /// Returns true if `other` is in the instance of a scope around `thread`.
    pub fn includes_thread(&self, scope: Scope, thread: usize, other: usize) -> bool {
        self.instance(scope, thread) & (1 << other) != 0
    }
}
