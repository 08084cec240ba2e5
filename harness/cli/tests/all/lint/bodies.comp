memoryBarrier(gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease);

data.value[id] = 1;
atomicStore(data.flag, 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease); //~ lint:no-availability

data.value[id] = 1;
atomicStore(data.flag, 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable);

row[id] = id;
data.value[id] = row[1 - id]; //~ lint:lockstep

row[id] = id;
barrier();
data.value[id] = row[1 - id];

// No other invocation accesses an element, if its index differs for every invocation.
row[id] = id;
data.value[id] = row[id];

row[id / 2] = id;
data.value[id] = row[id / 2]; //~ lint:lockstep

row[gl_LocalInvocationID.y] = id;
data.value[id] = row[gl_LocalInvocationID.y]; //~ lint:lockstep

if (id == 0) {
    barrier(); //~ lint:divergent-barrier
}

for (uint s = 1; s < 4; s *= 2) {
    if (id % (2 * s) == 0) {
        row[id] = s;
        barrier(); //~ lint:divergent-barrier
    }
}

// An early return, a loop, and data that may differ between invocations.
if (id >= data.flag) return;
barrier(); //~ lint:divergent-barrier

for (uint i = id; i < data.flag; i += 2) {
    barrier(); //~ lint:divergent-barrier
}

if (data.value[id] == 0) {
    return;
}
barrier(); //~ lint:divergent-barrier

for (uint i = 0; i < data.flag; i++) {
    if (i == id) {
        break;
    }
    barrier(); //~ lint:divergent-barrier
}

// Invocations reconverge before the barrier.
if (id >= data.flag) {
    row[id] = 1;
}
barrier();

for (uint i = 0; i < data.flag; i++) {
    barrier();
    if (i == id) {
        row[id] = i;
    }
}

for (uint i = id; i < data.flag; i += 2) {
    row[id] = i;
}
barrier();

// A loaded value may be uniform, and so may a comparison of an index with a bound.
if (data.flag == 0) {
    barrier();
}
if (id < 64) {
    barrier();
}

for (uint i = id; i < 64; i += 32) {
    barrier();
}

// A lock that every invocation acquires, and one that a single invocation acquires.
while (atomicExchange(data.flag, 1u) != 0u) {} //~ lint:lock-in-every-lane
atomicAdd(data.value[0], 1u);
atomicExchange(data.flag, 0u);

bool done = false;
while (!done) {
    if (atomicCompSwap(data.flag, 0u, 1u) == 0u) { //~ lint:lock-in-every-lane
        atomicAdd(data.value[0], 1u);
        atomicExchange(data.flag, 0u);
        done = true;
    }
}

// A loop that ends once the flag is set waits for no lock.
while (atomicExchange(data.flag, 1u) == 0u) {}
atomicAdd(data.value[0], 1u);
atomicExchange(data.flag, 0u);

// A bound on the attempts ends the loop without the lock.
bool done = false;
uint tries = 0;
while (!done) {
    if (atomicCompSwap(data.flag, 0u, 1u) == 0u) {
        done = true;
    } else {
        done = ++tries > 100;
    }
}
if (tries <= 100) {
    atomicExchange(data.flag, 0u);
}

bool done = false;
uint tries = 0;
while (!done) {
    if (atomicCompSwap(data.flag, 0u, 1u) == 0u) {
        done = true;
    } else {
        if (++tries > 100) done = true;
    }
}
if (tries <= 100) {
    atomicExchange(data.flag, 0u);
}

bool done = false;
uint tries = 0;
while (!done) {
    if (atomicCompSwap(data.flag, 0u, 1u) == 0u) {
        done = true;
    }
    if (++tries > 100) done = true;
}
if (tries <= 100) {
    atomicExchange(data.flag, 0u);
}

// A flag that every round resets.
bool done;
do {
    done = false;
    if (atomicCompSwap(data.flag, 0u, 1u) == 0u) done = true; //~ lint:lock-in-every-lane
} while (!done);
atomicExchange(data.flag, 0u);

// A barrier for buffers between accesses of shared memory, and one between accesses of a buffer.
row[id] = id;
controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible); //~ lint:wrong-barrier
data.value[id] = row[1 - id];

row[id] = id;
data.value[id] = id;
controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible);
row[id] = data.value[1 - id];

// A counter without atomics, incremented by every invocation and by one.
data.flag += 2; //~ lint:plain-update

if (id == 0) {
    data.flag += 2;
}

if (id != 0) return;
data.flag += 2;

if (id == 0) {
    while (atomicExchange(data.flag, 1u) != 0u) {}
    atomicExchange(data.flag, 0u);
}
