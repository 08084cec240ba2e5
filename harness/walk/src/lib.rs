//! Dynamic race detection over a whole grid: happens-before by vector clocks, one walk per schedule.
//!
//! Every invocation is executed with concrete inputs. Two conflicting accesses race if neither happens before
//! the other in the walked schedule, independent of the time between them. The clocks follow FastTrack
//! (Flanagan and Freund, PLDI 2009, <https://doi.org/10.1145/1542476.1542490>), extended by barrier epochs
//! and by the availability and visibility operations of the Vulkan memory model (appendix "Memory Model").
//!
//! A reported race is a race of the walked schedule. If no schedule-dependent value decides control flow, an
//! address or an acquire, one walk covers every schedule. Otherwise several schedules are tried. Races of
//! other schedules may then be missed, which the report's coverage states.

mod access;
mod access_names;
mod access_recorder;
mod accessed_bytes;
mod assumed_size;
mod atomic;
mod both_branches;
mod bytecode;
mod compute;
mod deadlock;
mod decode;
mod execute;
mod explore;
mod fast_path;
mod final_contents;
pub mod happens_before;
mod image;
mod implicit_flow;
mod influence;
mod input_branches;
mod interlock;
mod launch_taint;
mod machine;
mod memory;
mod program;
mod race_check;
mod race_classes;
mod ray_query;
mod register_variables;
mod report;
mod scalar_kind;
mod schedule;
mod setup;
mod shadow;
mod slots;
mod split_barrier;
mod state;
mod step;
mod subgroup;
mod subgroup_starvation;
mod sync;
pub mod texels;
mod trace;
mod trace_recorder;
mod trial;
mod value;
pub mod vector_clock;
mod workgroup_start;

pub use accessed_bytes::{
    AccessedBytes, EntryAccesses, MAX_TAINTED_BYTES, ResourceAccess, accessed_bytes, accesses_of_byte,
    entry_accesses,
};
pub use explore::{DEFAULT_SCHEDULES, analyze_grid, analyze_grid_thoroughly, analyze_until};
pub use report::{
    Blocked, CoverageLimit, DecidingModel, ExceededSize, FinalBuffer, FindingKey, GridFinding, GridReport,
    GridSpot, NeededInput, RequiredSize, WiderGridFinding, line_ranges, variable_of_element,
};
pub use results::wire::RaceVerdict;
pub use setup::MAX_INVOCATIONS;
pub use trace::trace_finding;
pub use trial::{LaunchProbe, Trial, probe_launch, run_trial};
