#define _GNU_SOURCE
#include "mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int map(aa_mapping_t *mapping, int descriptor, const char *path, aa_error_t *error)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
    {
        return aa_error_system(error, errno, "fstat of %s: %s", path, strerror(errno));
    }
    if (!S_ISREG(status.st_mode))
    {
        return aa_error_set(error, AA_CORRUPT, "%s is not a regular file", path);
    }
    if (status.st_size == 0)
    {
        *mapping = (aa_mapping_t){0};
        return AA_OK;
    }

    void *address = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (address == MAP_FAILED)
    {
        return aa_error_system(error, errno, "mmap of %s: %s", path, strerror(errno));
    }
    *mapping = (aa_mapping_t){.address = address, .length = (size_t)status.st_size};
    return AA_OK;
}

int aa_mapping_open(aa_mapping_t *mapping, const char *path, aa_error_t *error)
{
    /* O_NONBLOCK: opening a FIFO that somebody put there must not hang. */
    int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0)
    {
        if (errno == ENOENT || errno == ENOTDIR)
        {
            return aa_error_set(error, AA_NOT_READY, "%s does not exist", path);
        }
        return aa_error_system(error, errno, "open of %s: %s", path, strerror(errno));
    }

    int result = map(mapping, descriptor, path, error);
    close(descriptor);
    return result;
}

void aa_mapping_close(aa_mapping_t *mapping)
{
    if (mapping->address != NULL)
    {
        munmap(mapping->address, mapping->length);
        *mapping = (aa_mapping_t){0};
    }
}
