# What the worker scripts share: reads a request, speaks records. RS is the record separator of RFC 7464.
RS=$(printf '\036')
next() {
    IFS= read -r request || exit 0
    job=${request#*\"job\":}
    job=${job%%,*}
}
progress() { printf '%s{"progress":{"version":1,"job":%s,"payload":"%s"}}\n' "$RS" "$job" "$1"; }
answer() { printf '%s{"answer":{"version":1,"job":%s,"payload":"%s"}}\n' "$RS" "$job" "$1"; }
