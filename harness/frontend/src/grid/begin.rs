//! How workgroups and their invocations begin.

use std::collections::BTreeMap;

use rspirv::spirv::StorageClass;

use crate::error::{Problem, malformed, unsupported};
use crate::lift::Identity;
use crate::module::Constant;
use crate::section::Side;
use crate::stage;

use super::machine::{Doing, Invocation, Machine, Workgroup};
use super::memory::{Locals, Object};
use super::program::Slots;
use super::quick::gathered;
use super::value::{Pointer, Taint};

/// Bytes of a variable of a workgroup at most.
const MAX_SHARED: usize = 1 << 22;
/// Bytes of a variable of an invocation at most.
const MAX_OWN: usize = 1 << 18;

/// A variable of each invocation.
#[derive(Clone, Debug)]
pub(super) struct Own {
    variable: u32,
    bytes: Vec<u8>,
    taint: Vec<Taint>,
    /// Its type, where what it holds is another thing for each.
    input: Option<u32>,
}

impl Own {
    fn begin(&self, object: &mut Object) {
        (object.variable, object.given) = (self.variable, true);
        object.bytes.clone_from(&self.bytes);
        object.taint.clone_from(&self.taint);
    }
}

impl Machine<'_> {
    /// The workgroup of an index, begun.
    pub fn begin(&mut self, index: u32) -> Result<Workgroup, Problem> {
        let setup = self.setup;
        let count: u32 = setup.local_size.iter().product();
        let [x, y, _] = setup.grid;
        let workgroup = [index % x, index / x % y, index / x / y];
        let mut begun = Workgroup {
            invocations: Vec::new(),
            objects: Vec::new(),
            epochs: [0; 3],
            rounds: BTreeMap::new(),
        };
        for variable in &setup.of_workgroup {
            begun.objects.push(self.object_of(*variable, Some(litmus::StorageClass::Workgroup))?);
        }
        if self.own.is_empty() {
            self.own = setup
                .of_invocation
                .iter()
                .map(|variable| self.template(*variable))
                .collect::<Result<_, _>>()?;
        }
        for local_index in 0..count {
            let [x, y, _] = setup.local_size;
            let local = [local_index % x, local_index / x % y, local_index / x / y];
            let identity =
                Identity { workgroup, local, workgroup_index: index, local_index, stage: setup.stage };
            let (subgroup, lane) = (local_index / setup.subgroup_size, local_index % setup.subgroup_size);
            let mut locals = Vec::with_capacity(self.own.len());
            for own in &self.own {
                let mut object = self.spare_objects.pop().unwrap_or_default();
                own.begin(&mut object);
                if let Some(ty) = own.input {
                    self.give(&mut object, ty, &identity)?;
                }
                locals.push(object);
            }
            let frame = self.enter(setup.function, Slots::NOWHERE, locals.len());
            let frame = frame.ok_or_else(|| malformed("no such function"))?;
            begun.invocations.push(Invocation {
                identity,
                number: index * count + local_index,
                subgroup,
                lane,
                frames: vec![frame],
                locals: Locals::of(locals),
                stamp: 0,
                views: Default::default(),
                doing: Doing::Runs,
                released: Vec::new(),
                taken: Vec::new(),
                gathered: false,
                received: None,
                seen: BTreeMap::new(),
                split: [(0, 0); 2],
                last_release: 0,
                section: Side::Before,
                fruitless: false,
                last: 0,
            });
        }
        Ok(begun)
    }

    /// An object for a variable, as it is at first.
    fn object_of(&self, variable: u32, class: Option<litmus::StorageClass>) -> Result<Object, Problem> {
        let program = self.program;
        let Some(declared) = program.module.variables.get(&variable) else {
            return Err(malformed("no such variable"));
        };
        let size = program.size(declared.ty);
        let most = if class.is_some() { MAX_SHARED } else { MAX_OWN };
        let bytes = usize::try_from(size).ok().filter(|size| *size <= most);
        let bytes = bytes.ok_or_else(|| unsupported(format!("a variable of {size} bytes")))?;
        let name = if class.is_some() { program.module.name(variable) } else { String::new() };
        let mut object = Object::undefined(variable, name, class, bytes);
        let initializer = program.module.constants.get(&declared.initializer);
        if matches!(initializer, Some((_, Constant::Null))) {
            object.taint.clear();
        } else if declared.initializer != 0 {
            let slots = program.slots(declared.initializer);
            if let Some(value) = gathered(&[], &self.globals, slots) {
                self.fill(&mut object, &Pointer::to(0, declared.ty), declared.ty, &value)?;
            }
        }
        object.say(self.setup.said.get(&variable));
        Ok(object)
    }

    /// A variable of invocations, as it is at first.
    fn template(&self, variable: u32) -> Result<Own, Problem> {
        let Object { bytes, taint, .. } = self.object_of(variable, None)?;
        let declared = self.program.module.variables.get(&variable);
        let input = declared.filter(|declared| declared.class == StorageClass::Input);
        Ok(Own { variable, bytes, taint, input: input.map(|declared| declared.ty) })
    }

    /// Gives an invocation its input.
    fn give(&self, object: &mut Object, ty: u32, identity: &Identity) -> Result<(), Problem> {
        let location = self.program.module.decorations(object.variable).location;
        let given = location.and_then(|location| self.setup.given.get(&location));
        if let Some(given) = given
            .and_then(|given| stage::share_of(given, object.bytes.len() as u64, identity.workgroup_index))
        {
            object.bytes.copy_from_slice(given);
            object.taint.clear();
            return Ok(());
        }
        let value = self.built_in(object.variable, ty, identity)?;
        self.fill(object, &Pointer::to(0, ty), ty, &value)
    }
}
