/* Kills the process at its k-th durable operation under one directory, before, half-way through or after it.
 *
 * Loaded by LD_PRELOAD it sees every operation that goes through the C library, whoever asks for it: what
 * the storage seam does not count is seen here. It is armed by the environment (a whole process) or by
 * killer_arm (a forked one); children that were started by exec are none of its business.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum moment { BEFORE, HALFWAY, AFTER };

static char root[PATH_MAX];
static size_t root_length;
static long kill_at;
static enum moment kill_moment;
static pid_t owner;
static atomic_long count;
static int trace = -1;

static void leave(void) { syscall(SYS_kill, getpid(), SIGKILL); }

void killer_arm(const char *directory, long at, const char *when, const char *trace_path)
{
    root_length = strlen(directory);
    memcpy(root, directory, root_length + 1);
    kill_at = at;
    kill_moment = strcmp(when, "after") == 0 ? AFTER : strcmp(when, "halfway") == 0 ? HALFWAY : BEFORE;
    count = 0;
    if (trace_path && *trace_path)
        trace = syscall(SYS_openat, AT_FDCWD, trace_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    owner = getpid();
}

__attribute__((constructor)) static void arm_by_environment(void)
{
    const char *directory = getenv("KILLER_ROOT");
    if (directory)
        killer_arm(directory, atol(getenv("KILLER_AT")), getenv("KILLER_WHEN"), getenv("KILLER_TRACE"));
}

static void path_of(int descriptor, const char *name, char *path, size_t size)
{
    char link[64];
    size_t length = 0;
    path[0] = 0;
    if (!name || name[0] != '/') {
        snprintf(link, sizeof link, descriptor == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", descriptor);
        ssize_t got = readlink(link, path, size - 1);
        length = got < 0 ? 0 : (size_t)got;
        path[length] = 0;
    }
    if (name)
        snprintf(path + length, size - length, "%s%s", length ? "/" : "", name);
}

/* 1 when this operation is the one; counts it, if it lies under the directory. */
static int meets(const char *operation, int descriptor, const char *name)
{
    char path[2 * PATH_MAX], line[3 * PATH_MAX];
    if (!owner || owner != getpid())
        return 0;
    path_of(descriptor, name, path, sizeof path);
    if (strncmp(path, root, root_length) != 0 || (path[root_length] && path[root_length] != '/'))
        return 0;
    long number = atomic_fetch_add(&count, 1) + 1;
    if (trace >= 0) {
        int length = snprintf(line, sizeof line, "%s %s\n", operation, path + root_length);
        syscall(SYS_write, trace, line, length);
    }
    if (number != kill_at)
        return 0;
    if (kill_moment == BEFORE)
        leave();
    return 1;
}

#define ORIGINAL(name) \
    static __typeof__(&name) original; \
    if (!original) original = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define OPERATION(result, name, parameters, arguments, descriptor, path) \
    result name parameters \
    { \
        ORIGINAL(name); \
        int is_met = meets(#name, descriptor, path); \
        if (is_met && kill_moment == HALFWAY) leave(); \
        result done = original arguments; \
        if (is_met) leave(); \
        return done; \
    }

#define WRITING(name, parameters, arguments, half_arguments) \
    ssize_t name parameters \
    { \
        ORIGINAL(name); \
        int is_met = meets(#name, descriptor, NULL); \
        if (is_met && kill_moment == HALFWAY) { \
            if (original half_arguments < 0) _exit(99); \
            leave(); \
        } \
        ssize_t done = original arguments; \
        if (is_met) leave(); \
        return done; \
    }

WRITING(write, (int descriptor, const void *data, size_t size), (descriptor, data, size),
        (descriptor, data, size / 2))
WRITING(pwrite, (int descriptor, const void *data, size_t size, off_t offset), (descriptor, data, size, offset),
        (descriptor, data, size / 2, offset))
WRITING(pwrite64, (int descriptor, const void *data, size_t size, off64_t offset),
        (descriptor, data, size, offset), (descriptor, data, size / 2, offset))

OPERATION(int, fsync, (int descriptor), (descriptor), descriptor, NULL)
OPERATION(int, fdatasync, (int descriptor), (descriptor), descriptor, NULL)
OPERATION(int, ftruncate, (int descriptor, off_t size), (descriptor, size), descriptor, NULL)
OPERATION(int, ftruncate64, (int descriptor, off64_t size), (descriptor, size), descriptor, NULL)
OPERATION(int, fallocate, (int descriptor, int mode, off_t offset, off_t size), (descriptor, mode, offset, size),
          descriptor, NULL)
OPERATION(int, rename, (const char *from, const char *to), (from, to), AT_FDCWD, to)
OPERATION(int, renameat, (int from_directory, const char *from, int directory, const char *to),
          (from_directory, from, directory, to), directory, to)
OPERATION(int, link, (const char *from, const char *to), (from, to), AT_FDCWD, to)
OPERATION(int, linkat, (int from_directory, const char *from, int directory, const char *to, int flags),
          (from_directory, from, directory, to, flags), directory, to)
OPERATION(int, symlink, (const char *from, const char *to), (from, to), AT_FDCWD, to)
OPERATION(int, symlinkat, (const char *from, int directory, const char *to), (from, directory, to), directory, to)
OPERATION(int, mkdir, (const char *path, mode_t mode), (path, mode), AT_FDCWD, path)
OPERATION(int, mkdirat, (int directory, const char *path, mode_t mode), (directory, path, mode), directory, path)
OPERATION(int, unlink, (const char *path), (path), AT_FDCWD, path)
OPERATION(int, unlinkat, (int directory, const char *path, int flags), (directory, path, flags), directory, path)
OPERATION(int, rmdir, (const char *path), (path), AT_FDCWD, path)

#define OPENING(name, first_parameters, first_arguments, directory) \
    int name first_parameters \
    { \
        ORIGINAL(name); \
        mode_t mode = 0; \
        int is_met = 0; \
        if (flags & O_CREAT) { \
            va_list rest; \
            va_start(rest, flags); \
            mode = va_arg(rest, mode_t); \
            va_end(rest); \
            is_met = meets(#name, directory, path); \
        } \
        if (is_met && kill_moment == HALFWAY) leave(); \
        int done = original first_arguments; \
        if (is_met) leave(); \
        return done; \
    }

OPENING(open, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENING(open64, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENING(openat, (int parent, const char *path, int flags, ...), (parent, path, flags, mode), parent)
OPENING(openat64, (int parent, const char *path, int flags, ...), (parent, path, flags, mode), parent)
