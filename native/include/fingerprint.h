/* Which sources a module was built from: the two faces of the core work on each other's handles, so they must agree. */
#ifndef AA_FINGERPRINT_H
#define AA_FINGERPRINT_H

static inline const char *aa_build_fingerprint(void)
{
    return AA_FINGERPRINT;
}

#endif
