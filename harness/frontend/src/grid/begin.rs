//! How workgroups and their invocations begin.

use std::collections::BTreeMap;

use rspirv::spirv::StorageClass;

use crate::error::{Problem, malformed, unsupported};
use crate::lift::Identity;
use crate::module::Constant;
use crate::section::Side;
use crate::stage;

use super::machine::{Doing, Invocation, Machine, Workgroup};
use super::memory::Object;
use super::program::{GLOBAL, NONE};
use super::value::Pointer;

/// Bytes of a variable of a workgroup at most.
const MAX_SHARED: usize = 1 << 22;
/// Bytes of a variable of an invocation at most.
const MAX_OWN: usize = 1 << 18;

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
        for local_index in 0..count {
            let [x, y, _] = setup.local_size;
            let local = [local_index % x, local_index / x % y, local_index / x / y];
            let identity =
                Identity { workgroup, local, workgroup_index: index, local_index, stage: setup.stage };
            let (subgroup, lane) = (local_index / setup.subgroup_size, local_index % setup.subgroup_size);
            let mut locals = Vec::new();
            for variable in &setup.of_invocation {
                locals.push(self.own_object(*variable, &identity)?);
            }
            let frame = self.enter(setup.function, Vec::new(), NONE, locals.len());
            let Ok(frame) = frame else { return Err(malformed("no such function")) };
            begun.invocations.push(Invocation {
                identity,
                number: index * count + local_index,
                subgroup,
                lane,
                shape: setup.shape(),
                frames: vec![frame],
                locals,
                stamp: 0,
                views: Default::default(),
                doing: Doing::Runs,
                released: Vec::new(),
                taken: Vec::new(),
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
        let size = program.specialized.size(declared.ty)?;
        let most = if class.is_some() { MAX_SHARED } else { MAX_OWN };
        let bytes = usize::try_from(size).ok().filter(|size| *size <= most);
        let bytes = bytes.ok_or_else(|| unsupported(format!("a variable of {size} bytes")))?;
        let name = if class.is_some() { program.module.name(variable) } else { String::new() };
        let mut object = Object::undefined(variable, name, class, bytes);
        let initializer = program.module.constants.get(&declared.initializer);
        if matches!(initializer, Some((_, Constant::Null))) {
            object.taint.clear();
        } else if declared.initializer != 0 {
            let slot = program.slot(declared.initializer);
            if let Some(value) = self.globals.get((slot & !GLOBAL) as usize).filter(|_| slot != NONE) {
                self.fill(&mut object, &Pointer::to(0, declared.ty), declared.ty, value)?;
            }
        }
        object.say(self.setup.said.get(&variable));
        Ok(object)
    }

    fn own_object(&self, variable: u32, identity: &Identity) -> Result<Object, Problem> {
        let program = self.program;
        let mut object = self.object_of(variable, None)?;
        let class = program.module.variables.get(&variable).map(|variable| variable.class);
        if let Some(ty) = program.module.variables.get(&variable).map(|variable| variable.ty)
            && class == Some(StorageClass::Input)
        {
            let location = program.module.decorations(variable).location;
            let given = location.and_then(|location| self.setup.given.get(&location));
            if let Some(given) = given
                .and_then(|given| stage::share_of(given, object.bytes.len() as u64, identity.workgroup_index))
            {
                object.bytes.copy_from_slice(given);
                object.taint.clear();
                return Ok(object);
            }
            let value = self.built_in(variable, ty, identity)?;
            self.fill(&mut object, &Pointer::to(0, ty), ty, &value)?;
        }
        Ok(object)
    }
}
