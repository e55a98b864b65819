/* SPDX-License-Identifier: Apache-2.0 */
/* Access control lists of files, by the kernel's format of the extended attribute. */
#include "base/fileacl.h"

#include <endian.h>
#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <string.h>
#include <sys/xattr.h>

#define NAME    "system.posix_acl_access"
#define ENTRIES (BASE_FILEACL_GROUPS + 4) /* owner, group, others, and the mask */
#define RW      (ACL_READ | ACL_WRITE)

struct list {
	struct posix_acl_xattr_header head;
	struct posix_acl_xattr_entry entry[ENTRIES];
};

static struct posix_acl_xattr_entry entry(unsigned tag, unsigned perm, uint32_t id)
{
	return (struct posix_acl_xattr_entry){
	    .e_tag = htole16((uint16_t)tag), .e_perm = htole16((uint16_t)(perm & 7)), .e_id = htole32(id)};
}

int base_fileacl_set(const char *path, unsigned mode, const uint32_t *gid, unsigned n)
{
	struct list l = {.head.a_version = htole32(POSIX_ACL_XATTR_VERSION)};
	unsigned k = 0;

	if (n > BASE_FILEACL_GROUPS) {
		errno = E2BIG;
		return RWY_EINVAL;
	}
	l.entry[k++] = entry(ACL_USER_OBJ, mode >> 6, (uint32_t)ACL_UNDEFINED_ID);
	l.entry[k++] = entry(ACL_GROUP_OBJ, mode >> 3, (uint32_t)ACL_UNDEFINED_ID);
	for (unsigned i = 0; i < n; i++)
		l.entry[k++] = entry(ACL_GROUP, RW, gid[i]);
	if (n)
		l.entry[k++] = entry(ACL_MASK, RW | mode >> 3, (uint32_t)ACL_UNDEFINED_ID);
	l.entry[k++] = entry(ACL_OTHER, mode, (uint32_t)ACL_UNDEFINED_ID);
	return setxattr(path, NAME, &l, sizeof(l.head) + k * sizeof(l.entry[0]), 0) ? RWY_EINVAL : 0;
}

unsigned base_fileacl_groups(const char *path, uint32_t *gid, unsigned max)
{
	struct posix_acl_xattr_entry e;
	unsigned char buf[4096];
	const ssize_t size = getxattr(path, NAME, buf, sizeof(buf));
	unsigned n = 0;

	for (size_t at = sizeof(struct posix_acl_xattr_header); size > 0 && at + sizeof(e) <= (size_t)size;
	     at += sizeof(e)) {
		memcpy(&e, buf + at, sizeof(e));
		if (le16toh(e.e_tag) == ACL_GROUP && le16toh(e.e_perm) & ACL_WRITE && n < max)
			gid[n++] = le32toh(e.e_id);
	}
	return n;
}
